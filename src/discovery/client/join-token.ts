import { Secret } from '../../core/index.ts'
import {
  type BootstrapToken,
  BootstrapTokenInvalid,
  parseBootstrapToken,
} from '../tokens/bootstrap-token.ts'
import { badArguments } from './discovery-failed.ts'
import { parsePin } from './pins.ts'

/** A token and the pins that came with it in one word. */
export interface JoinToken {
  readonly token: BootstrapToken
  readonly pins: readonly string[]
}

/** Reads `id.secret`, or the token with the pins of all roots as one word: `id.secret@sha256:...@sha256:...`. */
export function parseJoinToken(given: Secret | string): JoinToken {
  const text = given instanceof Secret ? given.reveal() : given
  const [token = '', ...pins] = text.trim().split('@')
  try {
    return { token: parseBootstrapToken(token), pins: pins.map(parsePin) }
  } catch (error) {
    if (!(error instanceof BootstrapTokenInvalid)) throw error
    throw badArguments(error.message, 'it looks like abcdef.0123456789abcdef: copy all of it')
  }
}
