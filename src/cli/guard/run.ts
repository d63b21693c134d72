import {
  type AudienceList,
  Guard,
  type PortPair,
  ServiceAudiences,
  staticAudiences,
  type TrustHost,
} from '../../addon/guard/index.ts'
import { runUntilDrained, systemClock } from '../../core/index.ts'
import { type GuardValues, outputOf } from '../guard-options.ts'
import type { Io } from '../io.ts'
import { createLogger } from '../logger.ts'
import { findSurroundings, type Surroundings } from './pod-context.ts'

const graceMs = 10_000

/** Runs a guard until the process is asked to end. */
export async function runGuard(values: GuardValues, io: Io): Promise<void> {
  const ended = new AbortController()
  const log = createLogger({
    level: values.logLevel,
    format: io.interactive ? 'text' : 'json',
    clock: systemClock,
    write: (line) => io.stderr(line),
  })
  const host = { clock: systemClock, log, signal: ended.signal }
  try {
    const found = await findSurroundings(values, io, host)
    const { places } = found
    const guard = new Guard({
      ...places,
      verifier: found.verifier,
      audiences: await audiencesOf(values, found, host),
      output: outputOf(values),
      allowedRequestHeaders: values.allowRequestHeader,
      limits: {
        maxRequestMs: values.maxRequestDuration,
        bodyIdleMs: values.bodyIdleTimeout,
        maxHeaderCount: values.maxHeaderCount,
        maxTunnelMs: values.maxTunnelDuration,
        tunnelIdleMs: values.tunnelIdleTimeout,
      },
      accessLog: { level: values.accessLog, write: (lines) => io.stderr(lines) },
      clock: systemClock,
      log,
    })
    const { drain, kill } = io
    const onReady = (): void => io.stdout(startText(guard, places.ports, values))
    await runUntilDrained([guard], { drain, kill, graceMs, log, onReady })
  } finally {
    ended.abort()
  }
}

async function audiencesOf(
  { audience, namespace, audienceMaxAge: maxAgeMs }: GuardValues,
  { cluster, podName }: Surroundings,
  host: TrustHost,
): Promise<AudienceList> {
  if (!cluster || podName === undefined) return staticAudiences(audience)
  const { RemoteClusterView } = await import('../../client/index.ts')
  const audiences = new ServiceAudiences({
    ...host,
    view: new RemoteClusterView(cluster.client),
    namespace: namespace ?? cluster.context.namespace,
    podName,
    maxAgeMs,
  })
  await audiences.start()
  return audiences
}

function startText(guard: Guard, ports: readonly PortPair[], { output }: GuardValues): string {
  const { places } = guard
  if (output === 'json') return `${JSON.stringify({ listening: places })}\n`
  const perPort = places.length / (ports.length + 1)
  const rows = places.map((place, index) => {
    const forward = ports[Math.floor(index / perPort)]?.forward
    return forward
      ? `guarding  ${place}  for ${forward.host}:${forward.port}\n`
      : `health    ${place}  (/healthz /readyz /metrics)\n`
  })
  return rows.join('')
}
