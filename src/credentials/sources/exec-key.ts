import { createHash } from 'node:crypto'
import { Secret } from '../../core/index.ts'
import type { Cluster, ExecConfig } from '../../kubeconfig/index.ts'
import type { PluginHost } from '../exec/index.ts'

/**
 * Stands for everything that decides what a plugin would answer: its configuration, the cluster if it is told about
 * it, and the host's rules. A hash, because arguments and variables may be credentials.
 */
export function execKey(exec: ExecConfig, cluster: Cluster, host: PluginHost): string {
  const facts = {
    exec: [
      exec.command,
      exec.args ?? [],
      (exec.env ?? []).map(({ name, value }) => [name, value]),
      exec.apiVersion,
      exec.installHint ?? '',
      exec.provideClusterInfo ?? false,
      exec.interactiveMode ?? '',
    ],
    cluster: exec.provideClusterInfo ? cluster : null,
    policy: host.policy ?? null,
    dialect: host.inputDialect ?? 'shipped',
    stdinUnavailable: host.stdinUnavailable !== undefined,
    environment: identityOf(host.env),
    directory: host.cwd,
  }
  return createHash('sha256').update(canonicalText(facts)).digest('base64')
}

/** Text that two values share only if they say the same, whatever the order of their fields; secrets count. */
export function canonicalText(value: unknown): string {
  if (value instanceof Secret) return `secret ${JSON.stringify(value.reveal())}`
  if (value instanceof Map) return `map ${canonicalText([...value])}`
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined'
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalText(field)}`).join()}}`
}

const identities = new WeakMap<object, number>()
let lastIdentity = 0

/** A host's environment is one living object, such as `process.env`: which one counts, not what it has just now. */
function identityOf(object: object): number {
  const identity = identities.get(object) ?? ++lastIdentity
  identities.set(object, identity)
  return identity
}
