import { randomUUID } from 'node:crypto'
import type { Clock } from '../../core/index.ts'
import {
  addonAudience,
  addonTokenIssuer,
  addonTokenLifetimeSeconds,
  addonTokenType,
} from './profile.ts'
import { type AddonSigner, signAddonToken } from './signing-key.ts'

/** Who is behind a request, and which Service may know. */
export interface AddonIdentity {
  /** The name exactly as the cluster authenticated it. */
  readonly user: string
  readonly uid?: string
  /** Told only to add-ons that ask for them. */
  readonly groups?: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
  readonly namespace: string
  readonly service: string
  /** By which the audit log names the request. */
  readonly auditId?: string
}

/** Makes tokens that tell an add-on its user. */
export interface AddonTokenMinter {
  mint(identity: AddonIdentity): Promise<string>
}

/** What a minter is made of. */
export interface MinterOptions {
  readonly signer: AddonSigner
  readonly clock: Clock
  readonly issuer?: string
  readonly lifetimeSeconds?: number
}

/** A minter that signs every token anew. */
export function createAddonTokenMinter(options: MinterOptions): AddonTokenMinter {
  const { signer, clock, issuer = addonTokenIssuer } = options
  const { lifetimeSeconds = addonTokenLifetimeSeconds } = options
  return {
    mint: ({ user, uid, groups, extra, namespace, service, auditId }) => {
      const iat = Math.floor(clock.now() / 1000)
      const claims = {
        iss: issuer,
        sub: user,
        aud: [addonAudience(namespace, service)],
        exp: iat + lifetimeSeconds,
        iat,
        nbf: iat,
        jti: randomUUID(),
        ...(uid !== undefined && { uid }),
        ...(groups && { groups }),
        ...(extra && { 'k8s.extra': extra }),
        ...(auditId !== undefined && { cid: auditId }),
      }
      return signAddonToken(addonTokenType, claims, signer.current)
    },
  }
}
