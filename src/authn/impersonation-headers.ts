import { type AuthenticationRequest, badRequest } from '../core/index.ts'
import { rawHeaderValues } from '../http/index.ts'
import { extraKey, groupValues, headerText, prefixedHeaders } from './header-values.ts'

/** What every impersonation header begins with. */
export const impersonationPrefix = 'impersonate-'
const extraPrefix = `${impersonationPrefix}extra-`

/** Whom a request wants to act as, as it was asked for. */
export interface WantedIdentity {
  readonly username: string
  readonly uid: string | undefined
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

/** Reads the impersonation headers; `undefined` if there are none, 400 if they make no sense. */
export function wantedIdentity(request: AuthenticationRequest): WantedIdentity | undefined {
  if (!asksForAnother(request)) return undefined
  const { rawHeaders } = request
  const username = single(rawHeaders, 'Impersonate-User')
  const uid = single(rawHeaders, 'Impersonate-Uid')
  const groups = rawHeaderValues(rawHeaders, 'Impersonate-Group').map(text)
  const extra = groupValues(
    prefixedHeaders(rawHeaders, extraPrefix).map(({ rest, value }) => [
      extraKey(rest),
      text(value),
    ]),
  )
  if (Object.hasOwn(extra, '')) throw badRequest('an Impersonate-Extra- header names no key')
  if (username !== undefined) return { username, uid, groups, extra }
  const asked = [
    ...(uid === undefined ? [] : ['a uid']),
    ...(groups.length > 0 ? ['groups'] : []),
    ...(Object.keys(extra).length > 0 ? ['extras'] : []),
  ]
  if (asked.length === 0) return undefined
  throw badRequest(`requested ${asked.join(' and ')} without impersonating a user name`)
}

function asksForAnother({ headers }: AuthenticationRequest): boolean {
  for (const name in headers) if (name.startsWith(impersonationPrefix)) return true
  return false
}

/**
 * Kubernetes takes the first of several values and ignores an empty one; both could make a proxy
 * that impersonates act with its own rights, so here they are errors.
 */
function single(rawHeaders: readonly string[], name: string): string | undefined {
  const [value, ...others] = rawHeaderValues(rawHeaders, name)
  if (others.length > 0) throw badRequest(`${name} is there more than once`)
  if (value === '') throw badRequest(`${name} is empty`)
  return value === undefined ? undefined : text(value)
}

function text(value: string): string {
  try {
    return headerText(value)
  } catch {
    throw badRequest('an impersonation header is not UTF-8')
  }
}
