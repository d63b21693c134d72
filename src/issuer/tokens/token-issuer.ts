import { randomUUID } from 'node:crypto'
import type { IssuedToken, IssueToken } from '../../api/index.ts'
import {
  type Authorizer,
  type Clock,
  type ClusterView,
  conflict,
  type KubeObject,
  kubeTime,
  notFound,
  wellKnownKinds,
} from '../../core/index.ts'
import { signCompactJwsAside } from '../../jose/index.ts'
import type { IssuerNames } from '../documents/issuer-name.ts'
import type { IssuerKeys } from '../keys/key-ring.ts'
import { bindTo } from './bound-object.ts'
import { privateClaims, type ServiceAccountClaims, serviceAccountUser } from './claims.ts'
import { readTokenRequest, requireOfNode, type TokenWish } from './token-request.ts'

/** What tokens are made with. */
export interface TokenIssuerParts {
  readonly view: ClusterView
  /** Says which audiences a node was granted by name. */
  readonly authorizer: Authorizer
  readonly keys: IssuerKeys
  readonly names: IssuerNames
  readonly clock: Clock
  /** Longer wishes are cut; absent for no such limit. */
  readonly longestSeconds?: number
  /** Gives Pods' default tokens a year, so that old clients that never read them again keep working. */
  readonly extendsExpiration: boolean
  /** Called before a token is handed out, so that its key is kept as long as the token lives. */
  readonly noteToken?: (kid: string, untilMs: number) => Promise<void>
}

/** What the kubelet asks for the default token of a Pod, and nobody else. */
const defaultTokenSeconds = 3_607
const yearSeconds = 365 * 24 * 3_600

/** Makes tokens of service accounts as Kubernetes does. */
export function createTokenIssuer(parts: TokenIssuerParts): IssueToken {
  return async ({ object, asker }, signal) => {
    const account = await accountOf(parts.view, object, signal)
    const wish = readTokenRequest(object, parts.names.apiAudiences)
    await requireOfNode(
      parts,
      { asker, account, bound: wish.bound, audiences: wish.requested },
      signal,
    )
    const nowSeconds = Math.floor(parts.clock.now() / 1000)
    const binding = wish.bound ? await bindTo(parts.view, wish.bound, account, signal) : {}
    const { name, uid = '', namespace = '' } = account.metadata
    const life = lifeOf(wish, binding.bound?.kind === 'Pod', nowSeconds, parts)
    const claims: ServiceAccountClaims = {
      namespace,
      serviceAccount: { name, uid },
      ...binding,
      ...(life.warnAfter !== undefined && { warnAfter: life.warnAfter }),
    }
    const jti = randomUUID()
    const token = await sign(parts, {
      aud: wish.audiences,
      exp: life.expires,
      iat: nowSeconds,
      iss: parts.names.issuers[0],
      jti,
      'kubernetes.io': privateClaims(claims),
      nbf: nowSeconds,
      sub: serviceAccountUser(namespace, name),
    })
    return {
      object: answer(object, account, { wish, life, token, nowSeconds }),
      warnings: life.warnings,
      credentialId: `JTI=${jti}`,
    }
  }
}

async function sign(
  { keys, noteToken }: TokenIssuerParts,
  claims: Readonly<Record<string, unknown>> & { readonly exp: number },
): Promise<string> {
  keys.requireFresh()
  const { signer } = keys.current
  await noteToken?.(signer.kid, claims.exp * 1000)
  return signCompactJwsAside({ kid: signer.kid }, JSON.stringify(claims), signer)
}

async function accountOf(
  view: ClusterView,
  { metadata }: KubeObject,
  signal: AbortSignal,
): Promise<KubeObject> {
  const { name, namespace = '', uid } = metadata
  const account = await view.get(wellKnownKinds.serviceAccount, { name, namespace }, signal)
  if (!account) {
    const home = await view.get(wellKnownKinds.namespace, { name: namespace }, signal)
    throw home
      ? notFound(wellKnownKinds.serviceAccount, name)
      : notFound(wellKnownKinds.namespace, namespace)
  }
  if (uid && uid !== account.metadata.uid)
    throw conflict(
      { group: 'authentication.k8s.io', resource: 'TokenRequest' },
      name,
      `the UID in the token request (${uid}) does not match the UID of the service account (${account.metadata.uid ?? ''})`,
    )
  return account
}

interface Life {
  readonly expires: number
  /** As the asker is told, which is less than the truth for an extended token. */
  readonly seconds: number
  readonly warnAfter?: number
  readonly warnings: readonly string[]
}

function lifeOf(
  wish: TokenWish,
  isOfPod: boolean,
  nowSeconds: number,
  parts: TokenIssuerParts,
): Life {
  const isDefaultToken =
    isOfPod &&
    wish.seconds === defaultTokenSeconds &&
    wish.audiences.every((audience) => parts.names.apiAudiences.includes(audience))
  if (parts.extendsExpiration && isDefaultToken) {
    const warnAfter = nowSeconds + wish.seconds
    return { expires: nowSeconds + yearSeconds, seconds: wish.seconds, warnAfter, warnings: [] }
  }
  const longest = parts.longestSeconds ?? Number.POSITIVE_INFINITY
  const seconds = Math.min(wish.seconds, longest)
  const warnings =
    seconds < wish.seconds
      ? [`requested expiration of ${wish.seconds} seconds shortened to ${seconds} seconds`]
      : []
  return { expires: nowSeconds + seconds, seconds, warnings }
}

function answer(
  asked: KubeObject,
  account: KubeObject,
  made: {
    readonly wish: TokenWish
    readonly life: Life
    readonly token: string
    readonly nowSeconds: number
  },
): IssuedToken['object'] {
  const { wish, life, token, nowSeconds } = made
  const { name, namespace = '', uid = '' } = account.metadata
  const creationTimestamp = kubeTime(nowSeconds * 1000)
  return {
    kind: asked.kind,
    apiVersion: asked.apiVersion,
    metadata: { ...asked.metadata, name, namespace, uid, creationTimestamp },
    spec: {
      audiences: wish.audiences,
      expirationSeconds: life.seconds,
      boundObjectRef: wish.bound ? withoutEmpty(wish.bound) : null,
    },
    status: { token, expirationTimestamp: kubeTime((nowSeconds + life.seconds) * 1000) },
  }
}

const withoutEmpty = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''))
