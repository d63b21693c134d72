import { request as requestPlain } from 'node:http'
import { request } from 'node:https'
import { SallyportError } from '../../core/index.ts'
import { isObject, member, parseJsonObject, parseJwk } from '../../jose/index.ts'
import type { CaBundle } from './ca-bundle.ts'
import { type AddonVerificationKey, addonVerificationKey } from './verification-key.ts'

const maxBytes = 64 * 1024

/** A JWK set cannot be asked for at an address where others could answer in its place. */
class JwksAddressUnfit extends SallyportError {
  readonly code = 'JWKS_ADDRESS_UNFIT'
}

/** Where the keys of add-on tokens are published. */
export interface JwksOptions {
  /** https, or http on a loopback address. */
  readonly url: string
  /** The CAs to believe; those of the machine unless given. */
  readonly bundle?: CaBundle
  /** The name in the server's certificate, where the address is another. */
  readonly serverName?: string
  /** A credential to ask with, if the document is not for everybody. */
  readonly readToken?: () => Promise<string>
}

/** Asks for a JWK set; keys in it that cannot verify signatures are left out, and a set without any is a failure. */
export async function keysByJwks(
  options: JwksOptions,
  signal: AbortSignal,
): Promise<readonly AddonVerificationKey[]> {
  return parseKeySet(await fetchDocument(options, signal))
}

/** Reads a JWK set; throws unless it holds a key that add-on tokens may be signed with. */
export function parseKeySet(bytes: Uint8Array): readonly AddonVerificationKey[] {
  const document = parseJsonObject(bytes)
  const list: unknown = document && member(document, 'keys')
  const values: readonly unknown[] = Array.isArray(list) ? list : []
  const keys = values.map(parseKey).filter((key) => key !== undefined)
  if (keys.length > 0) return keys
  throw new Error('the document is no JWK set with a key for add-on tokens')
}

function parseKey(value: unknown): AddonVerificationKey | undefined {
  const key = parseJwk(value)
  // By the key itself: the id that somebody writes beside it proves nothing.
  return key && isObject(value) ? addonVerificationKey(key.key) : undefined
}

const loopbackHost = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

function readAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'https:') return url
  if (url?.protocol === 'http:' && loopbackHost.test(url.hostname)) return url
  throw new JwksAddressUnfit(`${text} must be an https address, or one of this very machine`)
}

async function fetchDocument(
  { url: address, bundle, serverName, readToken }: JwksOptions,
  signal: AbortSignal,
): Promise<Buffer> {
  const url = readAddress(address)
  const token = await readToken?.()
  const headers = {
    accept: 'application/jwk-set+json, application/json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
  const tls = {
    ...(bundle && { ca: bundle.certificates.map(String) }),
    ...(serverName !== undefined && { servername: serverName }),
  }
  return new Promise((resolve, reject) => {
    const ask =
      url.protocol === 'https:'
        ? request(url, { headers, signal, agent: false, ...tls })
        : requestPlain(url, { headers, signal, agent: false })
    ask.once('error', reject).once('response', (response) => {
      const chunks: Buffer[] = []
      let size = 0
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        chunks.push(chunk)
        if (size > maxBytes) response.destroy(new Error('the JWK set is too large'))
      })
      response.once('error', reject).once('end', () => {
        if (response.statusCode === 200) resolve(Buffer.concat(chunks))
        else reject(new Error(`the JWK set was answered with ${response.statusCode}`))
      })
    })
    ask.end()
  })
}
