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
import { signCompactJwsAsync } from '../../jose/index.ts'
import type { IssuerNames } from '../documents/issuer-name.ts'
import type { IssuerKeys } from '../keys/key-ring.ts'
import { bindTo } from './bound-object.ts'
import { privateClaims, type ServiceAccountClaims, serviceAccountUser } from './claims.ts'
import { readTokenRequest, requireOfNode, type TokenRequestSpec } from './token-request.ts'

/** What issuing tokens depends on. */
export interface TokenIssuerDeps {
  readonly view: ClusterView
  /** Decides which audiences a node may request. */
  readonly authorizer: Authorizer
  readonly keys: IssuerKeys
  readonly names: IssuerNames
  readonly clock: Clock
  /** Longer requested lifetimes are shortened; no limit if absent. */
  readonly maxLifetimeSeconds?: number
  /** Extends the default tokens of Pods to a year, for clients that do not reload them. */
  readonly extendsExpiration: boolean
  /** Called before a token is returned, so that its key is kept until the token expires. */
  readonly noteToken?: (kid: string, untilMs: number) => Promise<void>
}

/** The lifetime that the kubelet, and no other client, requests for the default token of a Pod. */
const defaultTokenSeconds = 3_607
const yearSeconds = 365 * 24 * 3_600

/** Issues tokens of service accounts as Kubernetes does. */
export function createTokenIssuer(deps: TokenIssuerDeps): IssueToken {
  return async ({ object, asker: user }, signal) => {
    const account = await accountOf(deps.view, object, signal)
    const spec = readTokenRequest(object, deps.names.apiAudiences)
    await requireOfNode(
      deps,
      { user, account, bound: spec.bound, audiences: spec.requested },
      signal,
    )
    const nowSeconds = Math.floor(deps.clock.now() / 1000)
    const binding = spec.bound ? await bindTo(deps.view, spec.bound, account, signal) : {}
    const { name, uid = '', namespace = '' } = account.metadata
    const lifetime = lifetimeOf(spec, binding.bound?.kind === 'Pod', nowSeconds, deps)
    const claims: ServiceAccountClaims = {
      namespace,
      serviceAccount: { name, uid },
      ...binding,
      ...(lifetime.warnAfter !== undefined && { warnAfter: lifetime.warnAfter }),
    }
    const jti = randomUUID()
    const token = await sign(deps, {
      aud: spec.audiences,
      exp: lifetime.expires,
      iat: nowSeconds,
      iss: deps.names.issuers[0],
      jti,
      'kubernetes.io': privateClaims(claims),
      nbf: nowSeconds,
      sub: serviceAccountUser(namespace, name),
    })
    return {
      object: response(object, account, { spec, lifetime, token, nowSeconds }),
      warnings: lifetime.warnings,
      credentialId: `JTI=${jti}`,
    }
  }
}

async function sign(
  { keys, noteToken }: TokenIssuerDeps,
  claims: Readonly<Record<string, unknown>> & { readonly exp: number },
): Promise<string> {
  keys.requireFresh()
  const { signer } = keys.current
  await noteToken?.(signer.kid, claims.exp * 1000)
  return signCompactJwsAsync({ kid: signer.kid }, JSON.stringify(claims), signer)
}

async function accountOf(
  view: ClusterView,
  { metadata }: KubeObject,
  signal: AbortSignal,
): Promise<KubeObject> {
  const { name, namespace = '', uid } = metadata
  const account = await view.get(wellKnownKinds.serviceAccount, { name, namespace }, signal)
  if (!account) {
    const parent = await view.get(wellKnownKinds.namespace, { name: namespace }, signal)
    throw parent
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

interface Lifetime {
  readonly expires: number
  /** As in the response; an extended token is valid for longer. */
  readonly seconds: number
  readonly warnAfter?: number
  readonly warnings: readonly string[]
}

function lifetimeOf(
  spec: TokenRequestSpec,
  isOfPod: boolean,
  nowSeconds: number,
  deps: TokenIssuerDeps,
): Lifetime {
  const isDefaultToken =
    isOfPod &&
    spec.seconds === defaultTokenSeconds &&
    spec.audiences.every((audience) => deps.names.apiAudiences.includes(audience))
  if (deps.extendsExpiration && isDefaultToken) {
    const warnAfter = nowSeconds + spec.seconds
    return { expires: nowSeconds + yearSeconds, seconds: spec.seconds, warnAfter, warnings: [] }
  }
  const maxSeconds = deps.maxLifetimeSeconds ?? Number.POSITIVE_INFINITY
  const seconds = Math.min(spec.seconds, maxSeconds)
  const warnings =
    seconds < spec.seconds
      ? [`requested expiration of ${spec.seconds} seconds shortened to ${seconds} seconds`]
      : []
  return { expires: nowSeconds + seconds, seconds, warnings }
}

function response(
  request: KubeObject,
  account: KubeObject,
  issued: {
    readonly spec: TokenRequestSpec
    readonly lifetime: Lifetime
    readonly token: string
    readonly nowSeconds: number
  },
): IssuedToken['object'] {
  const { spec, lifetime, token, nowSeconds } = issued
  const { name, namespace = '', uid = '' } = account.metadata
  const creationTimestamp = kubeTime(nowSeconds * 1000)
  return {
    kind: request.kind,
    apiVersion: request.apiVersion,
    metadata: { ...request.metadata, name, namespace, uid, creationTimestamp },
    spec: {
      audiences: spec.audiences,
      expirationSeconds: lifetime.seconds,
      boundObjectRef: spec.bound ? withoutEmpty(spec.bound) : null,
    },
    status: { token, expirationTimestamp: kubeTime((nowSeconds + lifetime.seconds) * 1000) },
  }
}

const withoutEmpty = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''))
