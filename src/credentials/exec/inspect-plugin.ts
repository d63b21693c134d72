import { visibleText } from '../../core/index.ts'
import type { ExecConfig } from '../../kubeconfig/index.ts'
import type { CredentialError } from '../errors.ts'
import {
  isKnownVersion,
  knownVersions,
  type PluginHost,
  type PluginRun,
  pluginError,
} from './plugin.ts'
import { isInteractive, refuseRecursion } from './plugin-environment.ts'
import { isAllowed } from './plugin-policy.ts'
import { type Lookup, resolveCommand } from './resolve-command.ts'

const hourMs = 3_600_000
const timesPerHour = 10
const mostCommands = 100
const shown = new Map<string, number[]>()

/** How to install a plugin, in the words of its kubeconfig but without power over the terminal. */
function installHint({ installHint: hint }: ExecConfig): string | undefined {
  return hint === undefined ? undefined : visibleText(hint)
}

/** Says whether a hint is shown again: a program that tries all the time must not repeat it all the time. */
function isHintDue({ command }: ExecConfig, { clock }: PluginHost): boolean {
  const now = clock.monotonic()
  const times = (shown.get(command) ?? []).filter((time) => now - time < hourMs)
  if (times.length >= timesPerHour) return false
  shown.delete(command)
  shown.set(command, [...times, now])
  const [oldest] = shown.keys()
  if (shown.size > mostCommands && oldest !== undefined) shown.delete(oldest)
  return true
}

/** What a run would do. */
export interface PluginPlan {
  /** The program that would run. */
  readonly resolvedPath: string
  /** Whether it would get stdin. */
  readonly interactive: boolean
}

/** Says what running a plugin would do, without running anything; rejects if it would not be run. */
export async function inspectPlugin(run: PluginRun, host: PluginHost): Promise<PluginPlan> {
  const { exec } = run
  checkConfig(run)
  refuseRecursion(exec, host)
  const interactive = isInteractive(exec, host)
  const found = await resolveCommand(exec.command, host)
  const path = 'path' in found ? found.path : undefined
  if (!(await isAllowed(exec.command, path, host))) {
    throw pluginError(
      'POLICY_DENIED',
      { command: exec.command, ...(path !== undefined && { resolvedPath: path }) },
      'may not run: the policy for exec plugins does not allow it',
    )
  }
  if ('path' in found) return { resolvedPath: found.path, interactive }
  throw unresolved(exec, found, host)
}

function checkConfig({ exec, cluster }: PluginRun): void {
  const refuse = (what: string): Error => pluginError('CONFIG_INVALID', exec, what)
  if (exec.command === '') throw refuse('has no command')
  if (!isKnownVersion(exec.apiVersion)) {
    throw refuse(`has an apiVersion that is none of ${knownVersions}`)
  }
  if (exec.env?.some(({ name }) => name === '')) throw refuse('has an env without a name')
  if (exec.provideClusterInfo && !cluster) throw refuse('asks for a cluster, and none is known')
}

function unresolved(
  exec: ExecConfig,
  { problem, why }: Exclude<Lookup, { path: string }>,
  host: PluginHost,
): CredentialError {
  const hint = installHint(exec)
  const shown = hint !== undefined && problem === 'NOT_FOUND' && isHintDue(exec, host)
  return pluginError(problem, exec, shown ? `${why}\n\n${hint}` : why, {
    ...(hint !== undefined && { hint }),
  })
}
