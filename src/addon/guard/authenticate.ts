import type { Clock, Logger } from '../../core/index.ts'
import { openCaBundle } from '../token/ca-bundle.ts'
import { AddonTokenRefused, type AddonUser, apiServerName } from '../token/claims.ts'
import {
  type AddonKeySource,
  keyByHandshake,
  keysByJwks,
  parseKeySet,
  RemoteAddonKeys,
} from '../token/verification-keys.ts'
import { AddonTokenVerifier } from '../token/verifier.ts'
import { X5cKeys } from '../token/x5c-keys.ts'
import type { AudienceList } from './audiences.ts'
import { type GuardRefused, unproven } from './refusal.ts'

/** By what a request proves its user. */
export interface Proof {
  readonly verifier: Pick<AddonTokenVerifier, 'verify'>
  readonly audiences: AudienceList
  readonly log: Logger
}

const noToken =
  'there is no token: come through the API server, with ?add-auth=true or an annotation of the Service'
const bearer = /^bearer ([\w.-]+)$/i

/** The user behind an Authorization header, at once if it was here just now; throws GuardRefused for anything that proves nobody. */
export function authenticate(
  authorization: string | undefined,
  { verifier, audiences, log }: Proof,
): AddonUser | Promise<AddonUser> {
  if (authorization === undefined) throw unproven('no-token', noToken)
  const [, token] = bearer.exec(authorization) ?? []
  if (token === undefined) throw unproven('malformed', 'the Authorization header holds no token')
  const problem = audiences.problem
  if (problem !== undefined) throw unproven(problem, 'it is not known which Services this Pod has')
  try {
    const found = verifier.verify(token, audiences)
    if (!(found instanceof Promise)) return found
    return found.catch((error: unknown) => {
      throw toRefusal(error, log)
    })
  } catch (error) {
    throw toRefusal(error, log)
  }
}

/** A check that cannot be made is a refusal too. */
function toRefusal(err: unknown, log: Logger): GuardRefused {
  if (err instanceof AddonTokenRefused) return unproven(err.code, err.message)
  log.error({ err }, 'a token could not be checked')
  return unproven('check-failed', 'the token could not be checked')
}

/** Whom to believe; several ways count at once. */
export interface TrustOptions {
  /** The cluster's CA: by it, certificates in tokens and of the API server are believed. */
  readonly caFile?: string
  /** Believe the certificate in a token's `x5c`; yes, unless it is switched off. */
  readonly x5c?: boolean
  /** Believe the key that the API server shows at this address by a handshake. */
  readonly handshake?: { readonly host: string; readonly port: number }
  /** Believe the keys of a JWK set, at an address or from whoever can ask for it. */
  readonly jwks?:
    | { readonly url: string }
    | { readonly load: (signal: AbortSignal) => Promise<Buffer> }
  /** The name in the API server's certificate. */
  readonly serverName?: string
  readonly issuer?: string
  readonly leewaySeconds?: number
  readonly longestSeconds?: number
}

/** What following the keys needs. */
export interface TrustHost {
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

const serviceAccountCa = '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt'

/** A verifier that follows its keys and CAs until the signal aborts. */
export async function openVerifier(
  trust: TrustOptions,
  host: TrustHost,
): Promise<AddonTokenVerifier> {
  const { caFile: file = serviceAccountCa, serverName = apiServerName, handshake, jwks } = trust
  const { clock, log, signal } = host
  const { x5c = true } = trust
  const isBundleNeeded = x5c || handshake !== undefined || trust.caFile !== undefined
  const bundle = isBundleNeeded ? await openCaBundle({ file, log, signal }) : undefined
  const keys: AddonKeySource[] = []
  const remote: RemoteAddonKeys[] = []
  if (x5c && bundle) keys.push(new X5cKeys({ bundle, serverName, clock }))
  if (handshake && bundle) {
    const place = { ...handshake, serverName, bundle, clock }
    const load = (during: AbortSignal) => keyByHandshake(place, during)
    remote.push(new RemoteAddonKeys({ name: 'handshake', load, clock, log, signal }))
  }
  if (jwks) {
    const load = async (during: AbortSignal) =>
      'load' in jwks
        ? parseKeySet(await jwks.load(during))
        : keysByJwks({ url: jwks.url, ...(bundle && { bundle }) }, during)
    remote.push(new RemoteAddonKeys({ name: 'jwks', load, clock, log, signal }))
  }
  await Promise.all(remote.map((source) => source.start()))
  return new AddonTokenVerifier({ ...trust, keys: [...keys, ...remote], clock })
}
