import { createKubeClient, httpsTransport, type Transport } from '../../client/index.ts'
import { parseJsonObject } from '../../jose/index.ts'
import { discoveryPath, jwksPath } from '../documents/issuer-documents.ts'
import {
  type PublicDocuments,
  type PublishOptions,
  publicDocuments,
  type ReceivedDocument,
} from './public-documents.ts'

/** Reads the documents of an issuer anew at each call. */
export type ReadDocuments = (signal: AbortSignal) => Promise<PublicDocuments>

const limits = { timeoutMs: 10_000, maxAnswerBytes: 256 * 1024 }

async function receive(
  transport: Transport,
  path: string,
  signal: AbortSignal,
): Promise<ReceivedDocument> {
  const client = createKubeClient({ transport, ...limits })
  const headers = { accept: 'application/json, application/jwk-set+json' }
  const answer = await client.request({ method: 'GET', path, headers }, signal)
  return { body: answer.body, cacheControl: answer.headers['cache-control'] }
}

/** Reads them from an API server, whatever address they name. */
export function documentsOfServer(transport: Transport, options: PublishOptions): ReadDocuments {
  return async (signal) => {
    // The key set last: one that has more keys than the other document knows of does no harm.
    const discovery = await receive(transport, discoveryPath, signal)
    return publicDocuments(discovery, await receive(transport, jwksPath, signal), options)
  }
}

/** Reads them as any relying party does, from the issuer's own address. */
export function documentsOfIssuer(
  issuer: string,
  caPem: string | undefined,
  options: PublishOptions,
): ReadDocuments {
  const transportTo = (server: string): Transport =>
    httpsTransport({ server, ...(caPem !== undefined && { caPem }) })
  const own = transportTo(issuer.replace(/\/$/, ''))
  return async (signal) => {
    const discovery = await receive(own, discoveryPath, signal)
    const named = parseJsonObject(discovery.body)?.['jwks_uri']
    const { origin, pathname } = new URL(typeof named === 'string' ? named : issuer)
    const keys = transportTo(origin)
    try {
      return publicDocuments(discovery, await receive(keys, pathname, signal), options)
    } finally {
      keys.destroy()
    }
  }
}
