import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Exchange } from './exchange.ts'

/** The header that carries the signature of an answer. */
const signatureHeader = 'X-Kubernetes-JWS'
/** What is signed is kept in memory until its end. */
const longestBody = 1024 * 1024

/**
 * Signs the answer, refusals too, if the credential asks for that: its reader does not trust the
 * connection. It is signed as it goes out, so it is not compressed and has no parts.
 */
export function signAnswer({ authentication, request, response }: Exchange): void {
  const { signAnswer: sign } = authentication
  if (!sign) return
  delete request.headers['accept-encoding']
  response.setHeader('Cache-Control', 'no-store')
  response.setHeader('Vary', 'Authorization, Accept')
  const isSigned = request.method !== 'HEAD'
  if (isSigned) holdBack(response, sign)
}

/** Keeps head and body until the end, when the signature can be made. */
function holdBack(response: ServerResponse, sign: (body: Uint8Array) => string): void {
  const chunks: Buffer[] = []
  let bytes = 0
  const take = (chunk: unknown): void => {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) return
    const part = Buffer.from(chunk as string)
    bytes += part.length
    if (bytes > longestBody) throw new Error('an answer that must be signed is too long')
    chunks.push(part)
  }
  const restore = (): void => {
    for (const own of ['write', 'end', 'writeHead']) Reflect.deleteProperty(response, own)
  }
  response.writeHead = (code: number, ...rest: unknown[]) => {
    response.statusCode = code
    const headers = rest.find((each) => typeof each === 'object' && each !== null)
    for (const [name, value] of Object.entries((headers ?? {}) as OutgoingHttpHeaders))
      if (value !== undefined) response.setHeader(name, value)
    return response
  }
  response.write = (chunk: unknown) => {
    take(chunk)
    return true
  }
  response.end = (chunk?: unknown) => {
    take(chunk)
    restore()
    const body = Buffer.concat(chunks)
    response.setHeader('Content-Length', body.length)
    response.setHeader(signatureHeader, sign(body))
    return response.end(body)
  }
}
