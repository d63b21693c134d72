import {
  hmacKey,
  isVerifiedBy,
  parseDetachedJws,
  signDetachedJws,
  TokenRefused,
} from '../../jose/index.ts'
import type { BootstrapToken } from '../tokens/bootstrap-token.ts'

/** Signs bytes with a token, in the very form that kubeadm computes and compares. */
export const signWithToken = (bytes: Uint8Array | string, { id, secret }: BootstrapToken): string =>
  signDetachedJws({ kid: id }, bytes, hmacKey(secret, id))

/** Checks that bytes were signed with this token; throws TokenRefused. */
export function verifySignature(jws: string, bytes: Uint8Array, token: BootstrapToken): void {
  const parsed = parseDetachedJws(jws, bytes)
  const { kid, typ } = parsed.header
  // A request is signed with the same key: its signature must not pass for that of an answer.
  if (typ !== undefined) throw new TokenRefused('bad-header', 'the signature is one of a request')
  if (kid !== token.id)
    throw new TokenRefused('unknown-key', 'the signature was made with another token')
  if (!isVerifiedBy(parsed, hmacKey(token.secret, token.id)))
    throw new TokenRefused('bad-signature', 'the signature does not fit the token or the answer')
}
