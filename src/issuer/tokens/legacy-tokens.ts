import { createHash, timingSafeEqual } from 'node:crypto'
import type { TokenAuthenticator } from '../../authn/index.ts'
import {
  type Authentication,
  type ClusterView,
  isRecord,
  type KubeObject,
  wellKnownKinds,
} from '../../core/index.ts'
import {
  type JsonObject,
  member,
  parseClaims,
  parseCompactJws,
  TokenRefused,
} from '../../jose/index.ts'
import { serviceAccountIdentity, serviceAccountUser, unverifiedIssuer } from './claims.ts'
import {
  commonAudiences,
  orUnauthorized,
  type TokenAuthenticatorDeps,
} from './token-authenticator.ts'

const legacyIssuer = 'kubernetes/serviceaccount'
const secretType = 'kubernetes.io/service-account-token'
const invalidSince = 'kubernetes.io/legacy-token-invalid-since'

interface LegacyClaims {
  readonly namespace: string
  readonly secret: string
  readonly account: { readonly name: string; readonly uid: string }
}

/**
 * Authenticates the tokens without expiry that older clusters store in Secrets. None are issued; an existing one is
 * valid as long as its Secret contains exactly this token.
 */
export function legacyServiceAccountTokens(deps: TokenAuthenticatorDeps): TokenAuthenticator {
  return {
    name: 'legacy-service-account',
    authenticateToken: async (token, signal, audiences = []) => {
      if (unverifiedIssuer(token) !== legacyIssuer) return undefined
      const { apiAudiences } = deps.names
      return orUnauthorized(async () => {
        const claims = verify(token, deps)
        const common = commonAudiences(
          apiAudiences,
          audiences.length > 0 ? audiences : apiAudiences,
        )
        await requireStored(token, claims, deps.view, signal)
        deps.onUse?.('legacy')
        return authentication(claims, common)
      })
    },
  }
}

function verify(token: string, { keys }: TokenAuthenticatorDeps): LegacyClaims {
  const jws = parseCompactJws(token)
  keys.current.accepted.verify(jws)
  const claims = parseClaims(jws.payload)
  const namespace = own(claims, 'namespace', 'namespace')
  const secret = own(claims, 'secret.name', 'secretName')
  const name = own(claims, 'service-account.name', 'serviceAccountName')
  const uid = own(claims, 'service-account.uid', 'serviceAccountUID')
  if (member(claims, 'iss') !== legacyIssuer) throw bad('the token has another issuer')
  if (member(claims, 'sub') !== serviceAccountUser(namespace, name))
    throw bad('sub claim is invalid')
  return { namespace, secret, account: { name, uid } }
}

function own(claims: JsonObject, name: string, label: string): string {
  const value = member(claims, `kubernetes.io/serviceaccount/${name}`)
  if (typeof value === 'string' && value !== '') return value
  throw bad(`${label} claim is missing`)
}

const bad = (why: string): TokenRefused => new TokenRefused('bad-claims', why)

async function requireStored(
  token: string,
  { namespace, secret: name, account }: LegacyClaims,
  view: ClusterView,
  signal: AbortSignal,
): Promise<void> {
  const [secret, found] = await Promise.all([
    view.get(wellKnownKinds.secret, { namespace, name }, signal),
    view.get(wellKnownKinds.serviceAccount, { namespace, name: account.name }, signal),
  ])
  if (!secret || secret.metadata.deletionTimestamp !== undefined)
    throw bad('token has been invalidated')
  if (secret['type'] !== secretType || !isSame(tokenIn(secret), token))
    throw bad("token does not match server's copy")
  if (!found) throw bad(`serviceaccounts ${JSON.stringify(account.name)} not found`)
  if (found.metadata.deletionTimestamp !== undefined)
    throw bad(`ServiceAccount ${namespace}/${account.name} has been deleted`)
  if (found.metadata.uid !== account.uid)
    throw bad(
      `ServiceAccount UID (${found.metadata.uid ?? ''}) does not match claim (${account.uid})`,
    )
  if (secret.metadata.labels?.[invalidSince])
    throw bad(
      `the token in secret ${namespace}/${name} for service account ${namespace}/${account.name} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '${invalidSince}' label from the secret to temporarily allow use of this token`,
    )
}

function tokenIn({ data }: KubeObject): string {
  const encoded = isRecord(data) ? data['token'] : undefined
  return typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString() : ''
}

/** Compares in constant time. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}

function authentication(
  { namespace, account }: LegacyClaims,
  audiences: readonly string[],
): Authentication {
  const user = serviceAccountIdentity(namespace, account)
  return {
    method: 'legacy-service-account',
    user,
    audiences,
    auditNotes: { 'authentication.k8s.io/legacy-token': user.username },
  }
}
