import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { exposition, withinTime } from '../../core/index.ts'
import { requestStatus, type Upstream } from '../../http/upstream/index.ts'
import type { GuardMetrics } from './metrics.ts'

/** What the health port tells. */
export interface HealthParts {
  readonly metrics: GuardMetrics
  /** Why requests would all be refused, or undefined. */
  readonly unready: () => string | undefined
  /** A path of the add-on that probes may ask for, exactly as it stands, without an identity. */
  readonly probe?: { readonly path: string; readonly upstream: Upstream }
}

/** A port for kubelets and Prometheus; only exact paths are open, and nothing else in a request matters. */
export function createHealthServer(parts: HealthParts): Server {
  return createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    request.resume()
    if (request.method !== 'GET' && request.method !== 'HEAD') answer(response, 405, 'GET only\n')
    else serve(parts, request, response)
  })
}

function serve(parts: HealthParts, request: IncomingMessage, response: ServerResponse): void {
  const { metrics, unready, probe } = parts
  if (probe && request.url === probe.path) {
    relay(probe, response)
    return
  }
  const { url = '' } = request
  switch (url) {
    case '/healthz':
    case '/livez':
      answer(response, 200, 'ok\n')
      break
    case '/readyz': {
      const problem = unready()
      answer(response, problem === undefined ? 200 : 503, `${problem ?? 'ok'}\n`)
      break
    }
    case '/metrics':
      answer(response, 200, metrics.registry.expose(), exposition)
      break
    default:
      answer(response, 404, 'not found\n')
  }
}

const maxProbeMs = 10_000

/** Only the status comes back: a probe needs no more, and nobody else should get an answer without a token. */
function relay(
  { path, upstream }: NonNullable<HealthParts['probe']>,
  response: ServerResponse,
): void {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const request = { method: 'GET', path, headers: ['Host', 'localhost'] }
  withinTime(maxProbeMs, gone.signal, (signal) => requestStatus(upstream, request, signal)).then(
    (status) => answer(response, status, ''),
    () => answer(response, 502, 'the add-on did not respond\n'),
  )
}

function answer(response: ServerResponse, status: number, body: string, type = 'text/plain'): void {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}
