import type { Transport } from '../../client/index.ts'
import { type Logger, systemErrorCode } from '../../core/index.ts'
import {
  type FetchDocumentOptions,
  FetchError,
  type FetchedDocument,
  fetchDocument,
  urlWithoutQuery,
} from '../../http/fetch/index.ts'
import { maxDocumentBytes } from './limits.ts'

/** What all requests of one attempt share. */
export interface RequestContext {
  /** For each request. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Traces every request and response, without credentials and bodies. */
  readonly log: Logger
}

/** One GET. */
export interface DiscoveryRequest extends RequestContext {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a GET to an https URL on a connection of its own and traces it; throws FetchError. */
export async function fetchTraced(
  { url, headers = {}, timeoutMs, signal, log }: DiscoveryRequest,
  tls: NonNullable<FetchDocumentOptions['tls']>,
): Promise<FetchedDocument> {
  const target = new URL(url)
  const trace = log.child({ url: urlWithoutQuery(target) })
  const signed = headers['authorization'] !== undefined
  trace.trace({ method: 'GET', verified: tls.verify !== false, signed }, 'request')
  const limits = { maxBytes: maxDocumentBytes, timeoutMs, signal }
  try {
    const document = await fetchDocument(target, { headers, tls, ...limits })
    trace.trace({ status: document.status, bytes: document.body.length }, 'response')
    return document
  } catch (error) {
    const { code, status } = error instanceof FetchError ? error : { code: systemErrorCode(error) }
    trace.trace({ code, status }, 'no usable response')
    throw error
  }
}

/** A transport that traces method, path and status of each request, without headers and bodies. */
export function tracedTransport(inner: Transport, log: Logger): Transport {
  return {
    ...inner,
    send: async (request) => {
      const about = { server: inner.server, method: request.method, path: request.path }
      log.trace(about, 'request')
      try {
        const response = await inner.send(request)
        log.trace({ ...about, status: response.status }, 'response')
        return response
      } catch (error) {
        log.trace({ ...about, code: systemErrorCode(error) }, 'no response')
        throw error
      }
    },
  }
}
