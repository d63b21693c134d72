import type { SigningKey } from '../../jose/index.ts'
import { type Attempt, refused } from './attempts.suite.ts'
import type { Claims, TokenLab } from './token-lab.suite.ts'

/** The algorithm is none of the key's. */
export const wrongAlgorithm = "the token's algorithm is not that of its key"

/** The signature is not over these bytes, or not by this key. */
export const wrongSignature = "the token's signature is invalid"

/** No key has the id, or none is of ours. */
export const unknownKey = 'invalid signature, no keys found'

/** The public half of a key as DER. */
export const publicDer = ({ publicKey }: SigningKey): Buffer =>
  publicKey.key.export({ type: 'spki', format: 'der' })

/** A good token with each of these headers in turn, all refused for one reason. */
export const headers = (
  lab: TokenLab,
  rows: Readonly<Record<string, Claims>>,
  why: string,
): Attempt[] =>
  Object.entries(rows).map(([name, header]) => refused(name, lab.token({ header }), why))
