import type { Clock, Logger } from '../../core/index.ts'
import { openCaBundle } from '../token/ca-bundle.ts'
import { keyByHandshake } from '../token/handshake-keys.ts'
import { keysByJwks, parseKeySet } from '../token/jwks-keys.ts'
import type { AddonKeySource } from '../token/key-source.ts'
import { apiServerName } from '../token/profile.ts'
import { RefreshedKeys } from '../token/refreshed-keys.ts'
import { AddonTokenVerifier } from '../token/verifier.ts'
import { X5cKeys } from '../token/x5c-keys.ts'

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
  const asked: RefreshedKeys[] = []
  if (x5c && bundle) keys.push(new X5cKeys({ bundle, serverName, clock }))
  if (handshake && bundle) {
    const place = { ...handshake, serverName, bundle, clock }
    const load = (during: AbortSignal) => keyByHandshake(place, during)
    asked.push(new RefreshedKeys({ name: 'handshake', load, clock, log, signal }))
  }
  if (jwks) {
    const load = async (during: AbortSignal) =>
      'load' in jwks
        ? parseKeySet(await jwks.load(during))
        : keysByJwks({ url: jwks.url, ...(bundle && { bundle }) }, during)
    asked.push(new RefreshedKeys({ name: 'jwks', load, clock, log, signal }))
  }
  await Promise.all(asked.map((source) => source.start()))
  return new AddonTokenVerifier({ ...trust, keys: [...keys, ...asked], clock })
}
