import {
  type Authentication,
  type AuthenticationRequest,
  type Authenticator,
  unauthorized,
} from '../core/index.ts'
import { rawHeaderValues } from '../http/index.ts'

const header = 'sec-websocket-protocol'
const tokenPrefix = 'base64url.bearer.authorization.k8s.io.'
/** In every spelling that was meant as a token: a misspelt credential is wrong, not absent. */
const tokenProtocol = /base64url\.bearer\.authorization\.k8s\.io/i

const protocolsOf = (values: readonly string[]): string[] =>
  values
    .flatMap((value) => value.split(','))
    .map((protocol) => protocol.replaceAll(/^[\t ]+|[\t ]+$/g, ''))
    .filter((protocol) => protocol !== '')

/** The subprotocols without the one that carries a token: no one else may see it. */
export const withoutTokenProtocol = (values: readonly string[]): string[] =>
  protocolsOf(values).filter((protocol) => !tokenProtocol.test(protocol))

/** Whether one of the subprotocols carries a token, or was meant to. */
export const hasTokenProtocol = (values: readonly string[]): boolean =>
  values.some((value) => tokenProtocol.test(value))

/** The token that a browser, which cannot set headers, sends as a WebSocket subprotocol. */
function websocketToken(request: AuthenticationRequest): string | undefined {
  if (request.headers[header] === undefined) return undefined
  const protocols = protocolsOf(rawHeaderValues(request.rawHeaders, header))
  const [encoded, ...others] = protocols.filter((protocol) => tokenProtocol.test(protocol))
  if (encoded === undefined) return undefined
  if (others.length > 0) throw unauthorized('websocket: more than one token')
  if (!isWebsocket(request)) throw unauthorized('websocket: a token without a WebSocket')
  if (!encoded.startsWith(tokenPrefix)) throw unauthorized('websocket: misspelt token protocol')
  if (protocols.length === 1) throw unauthorized('websocket: missing additional subprotocol')
  return decoded(encoded.slice(tokenPrefix.length))
}

function isWebsocket({ headers }: AuthenticationRequest): boolean {
  const upgrades = headers.connection?.toLowerCase().split(',') ?? []
  if (!upgrades.some((token) => token.trim() === 'upgrade')) return false
  return headers.upgrade?.toLowerCase() === 'websocket'
}

function decoded(encoded: string): string {
  const bytes = Buffer.from(encoded, 'base64url')
  // Buffer skips what is not base64url; what does not come back the same was not.
  if (encoded === '' || bytes.toString('base64url') !== encoded) {
    throw unauthorized('websocket: invalid token encoding')
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unauthorized('websocket: the token is not UTF-8')
  }
}

/**
 * Knows one kind of bearer token. `undefined` = not my kind, ask the next; a throw = my kind, and
 * bad. Makes no difference in time that tells how much of a token is right.
 */
export interface TokenAuthenticator {
  readonly name: string
  authenticateToken(
    token: string,
    signal: AbortSignal,
    /** For whom the token must have been made; the API server itself unless given. */
    audiences?: readonly string[],
    /** The address that it came from; absent if somebody asks about a token of others. */
    source?: string,
  ): Authentication | undefined | Promise<Authentication | undefined>
}

/** Bearer tokens of all kinds, for requests and, through `authenticateToken`, for TokenReview. */
export interface BearerTokens extends Authenticator, TokenAuthenticator {}

/**
 * Lets tokens that say nothing about audiences stand for those of the API server, and for no others:
 * one that everybody could be shown would make everybody its user.
 */
export function forApiAudiences(
  inner: TokenAuthenticator,
  apiAudiences: () => readonly string[],
): TokenAuthenticator {
  return {
    name: inner.name,
    authenticateToken: (token, signal, audiences, source) => {
      if (audiences === undefined) return inner.authenticateToken(token, signal, undefined, source)
      const implied = apiAudiences()
      const common =
        audiences.length === 0 ? implied : audiences.filter((each) => implied.includes(each))
      if (audiences.length > 0 && common.length === 0) return undefined
      const complete = (found: Authentication | undefined) =>
        found && { ...found, audiences: common }
      const found = inner.authenticateToken(token, signal)
      return found instanceof Promise ? found.then(complete) : complete(found)
    },
  }
}

/**
 * Reads the bearer token of a request and asks for it in order. A request that shows anything in
 * `Authorization` that nobody accepts is 401.
 */
export function bearerTokens(authenticators: readonly TokenAuthenticator[]): BearerTokens {
  type Question = Parameters<TokenAuthenticator['authenticateToken']>
  const askFrom = (
    start: number,
    question: Question,
  ): Authentication | undefined | Promise<Authentication | undefined> => {
    for (let index = start; index < authenticators.length; index += 1) {
      const found = authenticators[index]?.authenticateToken(...question)
      if (found instanceof Promise) {
        return found.then((result) => result ?? askFrom(index + 1, question))
      }
      if (found) return found
    }
    return undefined
  }
  return {
    name: 'bearer-token',
    authenticate: (request, signal) => {
      const token = bearerToken(request)
      if (token === undefined) return undefined
      const found = askFrom(0, [token, signal, undefined, request.socket.remoteAddress])
      return found instanceof Promise ? found.then(orRefuse) : orRefuse(found)
    },
    authenticateToken: (...question) => askFrom(0, question),
  }
}

function orRefuse(found: Authentication | undefined): Authentication {
  if (!found) throw unauthorized('nobody accepts the bearer token')
  return found
}

/** The token of a request, from `Authorization` or from a WebSocket subprotocol; `undefined` if none. */
export function bearerToken(request: AuthenticationRequest): string | undefined {
  const fromProtocol = websocketToken(request)
  if (request.headers.authorization === undefined) return fromProtocol
  const [value = '', ...others] = rawHeaderValues(request.rawHeaders, 'authorization')
  if (others.length > 0 || fromProtocol !== undefined) {
    throw unauthorized('more than one credential')
  }
  const token = /^bearer ([\x21-\x7e]+)$/i.exec(value)?.[1]
  if (token === undefined) throw unauthorized('the Authorization header is not a bearer token')
  return token
}
