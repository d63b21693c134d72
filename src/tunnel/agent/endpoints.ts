import { exposition, type MetricsRegistry } from '../../core/index.ts'
import { HttpEndpoint, type PathHandler, sendText } from '../ports/http-endpoint.ts'
import { profilingPaths } from '../ports/profiling.ts'

/** One condition of readiness: its name, and why it does not hold, if it does not. */
export interface Check {
  readonly name: string
  readonly problem: () => string | undefined
}

/** The answer to a question about readiness, in the form of Kubernetes' health endpoints. */
function readinessAnswer(
  checks: readonly Check[],
  isVerbose: boolean,
): { readonly status: 200 | 503; readonly text: string } {
  const results = checks.map(({ name, problem }) => ({ name, why: problem() }))
  const lines = results.map(({ name, why }) =>
    why === undefined ? `[+]${name} ok\n` : `[-]${name} failed: ${why}\n`,
  )
  // A failure is always told in full.
  if (results.some(({ why }) => why !== undefined)) return { status: 503, text: lines.join('') }
  return { status: 200, text: isVerbose ? `${lines.join('')}check passed\n` : 'ok' }
}

/** What the endpoints tell, and where. */
export interface AgentEndpointsParts {
  readonly checks: readonly Check[]
  readonly metrics: MetricsRegistry
  readonly health: { readonly host: string; readonly port: number }
  readonly admin: { readonly host: string; readonly port: number }
  readonly isProfiling: boolean
}

/** The health and the admin port of an agent. */
export class AgentEndpoints {
  readonly #parts: AgentEndpointsParts
  readonly #health: HttpEndpoint
  readonly #admin: HttpEndpoint

  constructor(parts: AgentEndpointsParts) {
    this.#parts = parts
    this.#health = new HttpEndpoint('health', healthPaths(parts))
    this.#admin = new HttpEndpoint('metrics', {
      '/metrics': redirectTo(() => this.healthPort),
      ...(parts.isProfiling && profilingPaths()),
    })
  }

  get healthPort(): number {
    return this.#health.port
  }

  get adminPort(): number {
    return this.#admin.port
  }

  async start(): Promise<void> {
    const { health, admin } = this.#parts
    await this.#health.listen(health)
    await this.#admin.listen(admin)
  }

  async stop(): Promise<void> {
    await Promise.all([this.#health.close(), this.#admin.close()])
  }
}

function healthPaths({ checks, metrics }: AgentEndpointsParts): Record<string, PathHandler> {
  const ready: PathHandler = (_request, response, url) => {
    const { status, text } = readinessAnswer(checks, url.searchParams.has('verbose'))
    sendText(response, status, text)
  }
  return {
    '/healthz': (_request, response) => sendText(response, 200, 'ok'),
    '/readyz': ready,
    '/ready': ready,
    '/metrics': (_request, response) => sendText(response, 200, metrics.expose(), exposition),
  }
}

const redirectTo =
  (port: () => number): PathHandler =>
  (request, response, url) => {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '')
    // What does not look like a host must not decide where a browser is sent.
    const safeHost = /^(?:[\w.-]+|\[[\da-f:.]+\])$/i.test(host) ? host : '127.0.0.1'
    const location = `http://${safeHost}:${port()}${url.pathname}${url.search}`
    response.setHeader('location', location)
    sendText(response, 301, `Moved: ${location}\n`)
  }
