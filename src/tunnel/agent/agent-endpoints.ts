import { exposition, type MetricsRegistry } from '../../core/metrics/index.ts'
import { HttpEndpoint, type PathHandler, profilingPaths, sendText } from '../ports/index.ts'
import { type Check, readinessAnswer } from './readiness.ts'

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
