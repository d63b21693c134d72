import type { Credential } from '../credential.ts'
import { isSendableToken } from '../sendable-token.ts'
import { ClientConfigInvalid } from './transport-errors.ts'
import type { RequestHeaders } from './transport-types.ts'

const known = new WeakMap<Credential, string>()

/** The Authorization header of a credential; undefined if it has only a certificate. */
export function authorizationOf(credential: Credential): string | undefined {
  const { token, basic } = credential
  if (!token && !basic) return undefined
  const found = known.get(credential)
  if (found !== undefined) return found
  const value = token ? bearer(token.reveal()) : basicAuthorization(basic)
  known.set(credential, value)
  return value
}

function bearer(token: string): string {
  if (isSendableToken(token)) return `Bearer ${token}`
  throw new ClientConfigInvalid('the token is empty or has characters that no header can carry')
}

function basicAuthorization(basic: Credential['basic']): string {
  const pair = `${basic?.username ?? ''}:${basic?.password.reveal() ?? ''}`
  return `Basic ${Buffer.from(pair).toString('base64')}`
}

/**
 * The headers of a request with those that say who sends it, set last. Where the configuration
 * impersonates, nothing of the caller's own impersonation is left to mix with it.
 */
export function withIdentity(
  headers: RequestHeaders,
  fixed: RequestHeaders | undefined,
  authorization: string | undefined,
): Record<string, string | readonly string[]> {
  const kept = fixed && impersonates(fixed) ? withoutImpersonation(headers) : headers
  return { ...kept, ...fixed, ...(authorization !== undefined && { authorization }) }
}

const isImpersonation = (name: string): boolean => name.startsWith('impersonate-')

const impersonates = (headers: RequestHeaders): boolean =>
  Object.keys(headers).some(isImpersonation)

const withoutImpersonation = (headers: RequestHeaders): RequestHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !isImpersonation(name)))
