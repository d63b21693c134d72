import type { Attempt } from './token-cases.suite.ts'

/** The answer to what is no token of any issuer that is known. */
export const notOurs = 'invalid bearer token'

type More = Omit<Attempt, 'name' | 'token' | 'refused'>

/** A token that gets in. */
export const accepted = (name: string, token: string, more: More = {}): Attempt => ({
  name,
  token,
  ...more,
})

/** A token that does not. */
export const refused = (
  name: string,
  token: string,
  why: string = notOurs,
  more: More = {},
): Attempt => ({ name, token, refused: why, ...more })
