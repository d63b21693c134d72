import type { TokenAuthenticator } from '../../authn/index.ts'
import {
  ApiError,
  type Attributes,
  type Authentication,
  type Clock,
  type Scope,
  Secret,
  unauthorized,
} from '../../core/index.ts'
import {
  type CompactJws,
  member,
  parseCompactJws,
  parseJsonObject,
  TokenRefused,
} from '../../jose/index.ts'
import { clusterInfoKey } from '../location/cluster-info-key.ts'
import { signWithToken } from '../signing/detached-signature.ts'
import { isDiscoveryJwt, verifyDiscoveryJwt } from '../signing/discovery-jwt.ts'
import type { BootstrapToken } from '../tokens/bootstrap-token.ts'
import { bootstrapUser } from './bootstrap-tokens.ts'
import type { TokenBook } from './token-book.ts'

export { clusterInfoKey }

/** What signed requests are judged by. */
export interface DiscoveryRequestParts {
  readonly book: Pick<TokenBook, 'find'>
  readonly clock: Clock
  /** Known once the cluster has one. */
  readonly clusterId: () => string | undefined
}

/** A request that went to an unverified server may have been overheard: it reads cluster-info and nothing else. */
const clusterInfoOnly: Scope = {
  name: 'cluster-info',
  permits: ({ verb, resource }: Attributes) =>
    verb === 'get' &&
    resource !== undefined &&
    resource.group === '' &&
    resource.resource === 'configmaps' &&
    resource.subresource === '' &&
    resource.namespace === clusterInfoKey.namespace &&
    resource.name === clusterInfoKey.name,
}

const nobody: BootstrapToken = { id: 'xxxxxx', secret: new Secret('x'.repeat(16)) }

/** Knows requests that are signed with a token instead of showing it; their answers are signed in turn. */
export function discoveryRequests(parts: DiscoveryRequestParts): TokenAuthenticator {
  return {
    name: 'discovery',
    authenticateToken: (text) => {
      const jws = parsed(text)
      if (!jws || !isDiscoveryJwt(jws) || hasIssuer(jws)) return undefined
      return authenticate(jws, jws.header.kid ?? '', parts)
    },
  }
}

function parsed(text: string): CompactJws | undefined {
  try {
    return parseCompactJws(text)
  } catch (error) {
    if (error instanceof TokenRefused) return undefined
    throw error
  }
}

function hasIssuer({ payload }: CompactJws): boolean {
  const claims = parseJsonObject(payload)
  return claims !== undefined && member(claims, 'iss') !== undefined
}

function authenticate(jws: CompactJws, id: string, parts: DiscoveryRequestParts): Authentication {
  const stored = parts.book.find(id)
  try {
    const rules = { nowMs: parts.clock.now(), clusterId: parts.clusterId() }
    // Verified in any case, so that time does not tell whether there is such a token.
    verifyDiscoveryJwt(jws, stored?.token ?? nobody, rules)
  } catch (error) {
    if (error instanceof TokenRefused) throw unauthorized(error.message)
    throw error
  }
  if (!stored?.usages.has('authentication')) throw unauthorized('the token is not for requests')
  if (!stored.usages.has('signing'))
    throw new ApiError('Forbidden', 'the token may not sign, so the answer could not be trusted')
  const { token } = stored
  return {
    method: 'discovery',
    user: { username: bootstrapUser(id), groups: ['system:bootstrap-discovery'] },
    scope: clusterInfoOnly,
    credential: { type: 'token', id },
    signAnswer: (body) => signWithToken(body, token),
    ...(stored.expiresAt !== undefined && { expiresAt: stored.expiresAt }),
  }
}
