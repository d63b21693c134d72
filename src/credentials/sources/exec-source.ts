import type { Cluster, ExecConfig } from '../../kubeconfig/index.ts'
import type { Credential, CredentialSource, Refusal } from '../credential.ts'
import { CredentialError, type CredentialErrorCode } from '../credential-error.ts'
import { execClusterInfo, type PluginHost, type PluginRun, runPlugin } from '../exec/index.ts'
import { type CallStatus, type CredentialObserver, nobody } from './credential-observer.ts'
import { execKey } from './exec-key.ts'
import { RotatingSource, type RotationTimes } from './rotating-source.ts'
import { processRegistry, type SourceRegistry } from './source-registry.ts'

/** Runs a plugin once. */
export type PluginRunner = (
  run: PluginRun,
  host: PluginHost,
  signal?: AbortSignal,
) => Promise<Credential>

/** How plugins are run and their credentials kept; everything but the host has a default. */
export interface ExecSourceHost {
  readonly plugins: PluginHost
  readonly observer?: CredentialObserver
  readonly times?: RotationTimes
  /** Where credentials are shared; those of this process unless given, 'none' to share nothing. */
  readonly registry?: SourceRegistry | 'none'
  readonly run?: PluginRunner
  readonly random?: () => number
}

/** The credential that a plugin hands out: run once for all who wait, and again in time. */
export function execSource(
  exec: ExecConfig,
  cluster: Cluster,
  host: ExecSourceHost,
): CredentialSource {
  const make = (): RotatingSource =>
    new RotatingSource({
      clock: host.plugins.clock,
      observer: host.observer ?? nobody,
      fetch: (refusal, signal) => observedRun({ exec, cluster, host }, refusal, signal),
      ...(host.times && { times: host.times }),
      ...(host.random && { random: host.random }),
    })
  const { registry = processRegistry } = host
  return registry === 'none' ? make() : registry.acquire(execKey(exec, cluster, host.plugins), make)
}

interface Plugin {
  readonly exec: ExecConfig
  readonly cluster: Cluster
  readonly host: ExecSourceHost
}

async function observedRun(
  { exec, cluster, host }: Plugin,
  refusal: Refusal | undefined,
  signal: AbortSignal,
): Promise<Credential> {
  const { plugins, observer = nobody, run = runPlugin } = host
  const { command } = exec
  const begin = plugins.clock.monotonic()
  const end = (status: CallStatus, exitCode: number, error?: unknown): void => {
    const durationMs = plugins.clock.monotonic() - begin
    const failure = error === undefined ? {} : { error }
    if (plugins.policy) observer.notify({ type: 'allowed', command })
    observer.notify({ type: 'run-end', command, durationMs, status, exitCode, ...failure })
  }
  observer.notify({ type: 'run-start', command })
  try {
    const about = exec.provideClusterInfo ? { cluster: await execClusterInfo(cluster) } : {}
    const credential = await run({ exec, ...about, ...(refusal && { refusal }) }, plugins, signal)
    end('no_error', 0)
    return credential
  } catch (error) {
    const code = error instanceof CredentialError ? error.code : undefined
    if (code === 'POLICY_DENIED') observer.notify({ type: 'denied', command })
    else end(...callResult(error), error)
    throw error
  }
}

const ownFaults = new Set<CredentialErrorCode>(['EXIT', 'SIGNAL', 'TIMEOUT', 'OUTPUT_TOO_LARGE'])
const absences = new Set<CredentialErrorCode>(['NOT_FOUND', 'NOT_EXECUTABLE'])

/** What Kubernetes' metric says of a failed call: the plugin's fault or ours, and its exit code. */
function callResult(error: unknown): [status: CallStatus, exitCode: number] {
  if (!(error instanceof CredentialError)) return ['client_internal_error', 1]
  if (absences.has(error.code)) return ['plugin_not_found_error', 1]
  if (ownFaults.has(error.code)) return ['plugin_execution_error', error.exitCode ?? -1]
  return ['client_internal_error', 1]
}
