import { createHash } from 'node:crypto'
import { type Clock, type MetricsRegistry, Secret } from '../../core/index.ts'
import type { Cluster, ExecConfig } from '../../kubeconfig/index.ts'
import type { Credential, CredentialSource, Refusal } from '../credential.ts'
import { CredentialError, type CredentialErrorCode } from '../errors.ts'
import { execClusterInfo, type PluginHost, type PluginRun, runPlugin } from '../exec/index.ts'
import { RotatingSource, type RotationTimes } from './rotating-source.ts'
import { type CallStatus, type CredentialObserver, nobody } from './source.ts'
import { processRegistry, type SourceRegistry } from './source-registry.ts'

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

const minute = 60
const hour = 60 * minute
const day = 24 * hour

/** From ten minutes, too often, to four years, too seldom. */
const ageBuckets = [
  10 * minute,
  30 * minute,
  hour,
  4 * hour,
  day,
  7 * day,
  30 * day,
  90 * day,
  180 * day,
  360 * day,
  1_440 * day,
]

/** Counts what plugins do under the names that Kubernetes' own clients use. */
export function execMetrics(registry: MetricsRegistry, clock: Clock): CredentialObserver {
  const calls = registry.counter(
    'rest_client_exec_plugin_call_total',
    'Calls of exec plugins by exit code and outcome',
    ['code', 'call_status'],
  )
  const policyCalls = registry.counter(
    'rest_client_exec_plugin_policy_call_total',
    'Exec plugins that the plugin policy was asked about, by its answer',
    ['status'],
  )
  const ages = registry.histogram(
    'rest_client_exec_plugin_certificate_rotation_age',
    'Age in seconds of client certificates of exec plugins when they were replaced',
    { buckets: ageBuckets },
  )
  let earliestEnd = Number.POSITIVE_INFINITY
  registry.observed(
    'gauge',
    'rest_client_exec_plugin_ttl_seconds',
    'Seconds until the client certificate of an exec plugin expires; +Inf if there is none',
    () => [{ value: (earliestEnd - clock.now()) / 1_000 }],
  )
  return {
    notify: (event) => {
      if (event.type === 'run-end') calls.with(String(event.exitCode), event.status).inc()
      else if (event.type === 'allowed' || event.type === 'denied')
        policyCalls.with(event.type).inc()
      else if (event.type === 'fetched') earliestEnd = event.certificateEndsAt ?? earliestEnd
      else if (event.type === 'rotate' && event.certificateChanged)
        ages.with().observe(event.ageMs / 1_000)
    },
  }
}
