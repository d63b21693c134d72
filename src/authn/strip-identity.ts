import { foldHeaderName, headerPairs, isIdentityHeader, rememberByName } from '../http/index.ts'
import { withoutTokenProtocol } from './bearer-token.ts'
import { impersonationPrefix } from './impersonation.ts'
import { type FrontProxyHeaders, standardFrontProxyHeaders } from './request-header.ts'

/** Tells whether a header could make somebody behind us believe in an identity, in any spelling. */
export function identityHeaderTest(
  custom: FrontProxyHeaders = standardFrontProxyHeaders,
): (name: string) => boolean {
  const sets = [standardFrontProxyHeaders, custom]
  const names = new Set(
    sets.flatMap((set) => [...set.username, ...set.uid, ...set.group]).map(foldHeaderName),
  )
  names.add('authorization')
  const prefixes = [...sets.flatMap((set) => set.extraPrefix), impersonationPrefix].map(
    foldHeaderName,
  )
  return (name) => {
    const plain = foldHeaderName(name)
    return names.has(plain) || prefixes.some((prefix) => plain.startsWith(prefix))
  }
}

/**
 * Whether a header claims an identity towards an add-on: by the names that proxies use, or by those that this server
 * is configured with. `allowed` has the names, in lower case, that the add-on has declared.
 */
export function addonIdentityTest(
  custom: FrontProxyHeaders,
): (name: string, allowed?: ReadonlySet<string>) => boolean {
  const isFrontProxyHeader = identityHeaderTest(custom)
  const isIdentity = rememberByName((name) => isIdentityHeader(name) || isFrontProxyHeader(name))
  return (name, allowed) => {
    if (!allowed?.has(name.toLowerCase())) return isIdentity(name)
    return isIdentityHeader(name, allowed) || isFrontProxyHeader(name)
  }
}

/**
 * The headers of a request without its credentials and without every header by which it claims an
 * identity, for whoever forwards it: to be called before our own identity headers are added.
 */
export function withoutIdentity(
  rawHeaders: readonly string[],
  isIdentity: (name: string) => boolean,
): string[] {
  const kept: string[] = []
  for (const [name, value] of headerPairs(rawHeaders)) {
    if (isIdentity(name)) continue
    if (foldHeaderName(name) !== 'sec-websocket-protocol') kept.push(name, value)
    else {
      const protocols = withoutTokenProtocol([value])
      if (protocols.length > 0) kept.push(name, protocols.join(', '))
    }
  }
  return kept
}
