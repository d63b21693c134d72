import { createHash } from 'node:crypto'
import type { ExecConfig } from '../../kubeconfig/index.ts'
import { execInfoVariable } from './exec-versions.ts'
import { pluginError } from './plugin-error.ts'
import type { PluginHost } from './plugin-run.ts'

/** Names the plugins that are running above this process. */
export const chainVariable = 'SALLYPORT_EXEC_CHAIN'
const longestChain = 8

/** The variables of a plugin: the host's, then the kubeconfig's, then ours. */
export function pluginEnvironment(
  exec: ExecConfig,
  host: PluginHost,
  execInfo: string,
): Record<string, string> {
  const variables = new Map<string, readonly [name: string, value: string]>()
  const set = (name: string, value: string): void => {
    // Windows does not tell Path from PATH, and would pick one of two by chance.
    variables.set(host.platform === 'win32' ? name.toUpperCase() : name, [name, value])
  }
  const isDropped = dropRule(host)
  for (const [name, value] of Object.entries(host.env)) {
    if (value !== undefined && !isDropped(name)) set(name, value)
  }
  for (const { name, value } of exec.env ?? []) set(name, value.reveal())
  set(execInfoVariable, execInfo)
  set(chainVariable, [...chainAbove(host), fingerprint(exec)].join(','))
  return Object.fromEntries(variables.values())
}

function dropRule({ dropEnv = [] }: PluginHost): (name: string) => boolean {
  return typeof dropEnv === 'function' ? dropEnv : (name) => dropEnv.includes(name)
}

const chainAbove = (host: PluginHost): string[] =>
  host.env[chainVariable]?.split(',').filter(Boolean) ?? []

/** Refuses a plugin that runs under itself: it would start processes without end. */
export function refuseRecursion(exec: ExecConfig, host: PluginHost): void {
  const chain = chainAbove(host)
  if (!chain.includes(fingerprint(exec)) && chain.length < longestChain) return
  throw pluginError(
    'RECURSION',
    exec,
    'needs a credential of itself: let it use a kubeconfig of its own, without this exec section',
  )
}

function fingerprint({ command, args = [], apiVersion }: ExecConfig): string {
  const text = JSON.stringify([command, args, apiVersion])
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
