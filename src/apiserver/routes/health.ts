import type { ServerResponse } from 'node:http'
import { type Logger, SallyportError } from '../../core/index.ts'
import { defaultHealthCheckTimeoutMs } from '../limits.ts'
import type { RouteHandler } from '../pipeline/types.ts'
import { type PathRoute, send } from './route.ts'

/** A health check; `check` throws when it fails. */
export interface HealthCheck {
  readonly name: string
  check(signal: AbortSignal): void | Promise<void>
}

/** Always passes: the process responds. */
export const ping: HealthCheck = { name: 'ping', check: () => {} }

/** Fails once the server has begun to shut down, so that load balancers send no new requests. */
export const shutdownCheck = (draining: AbortSignal): HealthCheck => ({
  name: 'shutdown',
  check() {
    if (draining.aborted) throw new HealthCheckFailed('process is shutting down')
  },
})

/** A check failed for a reason that clients may see. */
export class HealthCheckFailed extends SallyportError {
  readonly code = 'UNWELL'
}

/** The checks of each of the three paths. */
export interface HealthOptions {
  /** Must the process be restarted? */
  readonly livez: readonly HealthCheck[]
  /** Should it get work? */
  readonly readyz: readonly HealthCheck[]
  readonly log: Logger
  /** For one check; a check that takes longer fails. */
  readonly checkTimeoutMs?: number
}

/** `/healthz`, `/livez` and `/readyz`, each with a path per check below it, as Kubernetes has them. */
export function healthRoutes(options: HealthOptions): PathRoute[] {
  const sets = [
    ['healthz', options.livez],
    ['livez', options.livez],
    ['readyz', options.readyz],
  ] as const
  return sets.flatMap(([name, checks]) => [
    { path: `/${name}`, handle: allOf(name, checks, options) },
    ...checks.map((check) => ({ path: `/${name}/${check.name}`, handle: oneOf(check, options) })),
  ])
}

interface Outcome {
  readonly name: string
  readonly state: 'ok' | 'excluded' | 'failed'
  readonly error?: unknown
}

function allOf(name: string, checks: readonly HealthCheck[], options: HealthOptions): RouteHandler {
  let lastFailed = ''
  return async ({ info }, response, signal) => {
    const excluded = new Set(info.query.getAll('exclude'))
    const outcomes = await Promise.all(
      checks.map((check) => outcomeOf(check, excluded, signal, options.checkTimeoutMs)),
    )
    const failed = outcomes.filter(({ state }) => state === 'failed')
    const failedNames = failed.map((outcome) => outcome.name).join(', ')
    if (failedNames !== lastFailed) {
      lastFailed = failedNames
      const reasons = failed.map(({ name: check, error }) => ({ check, reason: reasonOf(error) }))
      if (failed.length > 0)
        options.log.warn({ path: `/${name}`, failed: reasons }, 'health check failed')
      else options.log.info({ path: `/${name}` }, 'health check passed again')
    }
    const lines = outcomes.map(lineOf).join('') + warningOf(excluded, checks)
    if (failed.length > 0) sendFailed(response, `${lines}${name} check failed`)
    else sendPassed(response, info.query.has('verbose') ? `${lines}${name} check passed\n` : 'ok')
  }
}

async function outcomeOf(
  check: HealthCheck,
  excluded: ReadonlySet<string>,
  signal: AbortSignal,
  timeoutMs = defaultHealthCheckTimeoutMs,
): Promise<Outcome> {
  const { name } = check
  if (excluded.has(name)) return { name, state: 'excluded' }
  try {
    await withTimeout(check, signal, timeoutMs)
    return { name, state: 'ok' }
  } catch (error) {
    return { name, state: 'failed', error }
  }
}

async function withTimeout(
  check: HealthCheck,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new HealthCheckFailed(`no result within ${timeoutMs} ms`)),
      timeoutMs,
    )
  })
  try {
    await Promise.race([check.check(signal), late])
  } finally {
    clearTimeout(timer)
  }
}

/** Anonymous clients may read the summary; the reason of a failure needs the permission for the path of the check. */
function lineOf({ name, state }: Outcome): string {
  if (state === 'failed') return `[-]${name} failed: reason withheld\n`
  return state === 'excluded' ? `[+]${name} excluded: ok\n` : `[+]${name} ok\n`
}

function warningOf(excluded: ReadonlySet<string>, checks: readonly HealthCheck[]): string {
  const known = new Set(checks.map((check) => check.name))
  const unknown = [...excluded].filter((name) => !known.has(name)).sort()
  if (unknown.length === 0) return ''
  const quoted = unknown.map((name) => JSON.stringify(name)).join(',')
  return `warn: some health checks cannot be excluded: no matches for ${quoted}\n`
}

function oneOf(check: HealthCheck, options: HealthOptions): RouteHandler {
  return async (_request, response, signal) => {
    const none = new Set<string>()
    const { error, state } = await outcomeOf(check, none, signal, options.checkTimeoutMs)
    if (state === 'ok') sendPassed(response, 'ok')
    else sendFailed(response, `internal server error: ${reasonOf(error)}`)
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof SallyportError ? error.message : 'internal error'

const plainText = 'text/plain; charset=utf-8'

function sendPassed(response: ServerResponse, text: string): void {
  send(response, plainText, text)
}

function sendFailed(response: ServerResponse, text: string): void {
  const body = Buffer.from(`${text}\n`)
  response.writeHead(500, {
    'Content-Type': plainText,
    'Content-Length': body.length,
  })
  response.end(body)
}
