import type { TokenAuthenticator } from '../../authn/index.ts'
import {
  ApiError,
  type Attributes,
  type Authentication,
  type Clock,
  type Logger,
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
import { clusterInfoKey } from '../cluster-info/cluster-info.ts'
import { type BootstrapToken, isTokenId } from '../tokens/bootstrap-token.ts'
import { isDiscoveryJwt, signWithToken, verifyDiscoveryJwt } from '../tokens/signature.ts'
import type { TokenKey } from './authenticator.ts'
import type { FailureLimit } from './failure-limit.ts'

export { clusterInfoKey }

/** What signed requests are judged by. */
export interface DiscoveryRequestParts {
  readonly keys: (id: string) => TokenKey | undefined
  readonly failures: FailureLimit
  readonly clock: Clock
  readonly log: Logger
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
    authenticateToken: (text, _signal, audiences, source) => {
      const jws = parsed(text)
      if (!jws || !isDiscoveryJwt(jws) || hasIssuer(jws)) return undefined
      // It is for one request to this server; nobody else is to believe it.
      if (audiences !== undefined) throw unauthorized('the token is for discovery only')
      const attempt = { source, id: jws.header.kid ?? '' }
      // Anything may stand where the id belongs, a whole token too.
      const tokenId = isTokenId(attempt.id) ? attempt.id : 'malformed'
      const about = { tokenId, source }
      try {
        const found = authenticate(jws, attempt.id, parts)
        parts.log.trace(about, 'signed request accepted')
        return found
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        parts.log.trace({ ...about, why: error.detail ?? error.message }, 'signed request refused')
        if (error.reason === 'Unauthorized') parts.failures.failed(attempt)
        throw error
      }
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
  const key = parts.keys(id)
  try {
    const rules = { nowMs: parts.clock.now(), clusterId: parts.clusterId() }
    // Verified in any case, so that time does not tell whether there is such a token.
    verifyDiscoveryJwt(jws, key?.token ?? nobody, rules)
  } catch (error) {
    if (error instanceof TokenRefused) throw unauthorized(error.message)
    throw error
  }
  if (!key?.usages.has('authentication')) throw unauthorized('the token is not for requests')
  if (!key.usages.has('signing'))
    throw new ApiError('Forbidden', 'the token may not sign, so the answer could not be trusted')
  return {
    method: 'discovery',
    user: key.user,
    scope: clusterInfoOnly,
    credential: { type: 'token', id },
    signResponse: (body) => signWithToken(body, key.token),
    ...(key.expiresAt !== undefined && { expiresAt: key.expiresAt }),
  }
}
