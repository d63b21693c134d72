import type { TokenLab } from './token-lab.suite.ts'

/** One token that somebody shows, and what becomes of it. */
export interface Attempt {
  readonly name: string
  readonly token: string
  /** Part of the reason; absent for a token that is accepted. */
  readonly refused?: string
  /** What a relying party outside says, where it must differ: it sees the documents and nothing else. */
  readonly outside?: 'accepted' | 'refused'
  /** Whom it must be for, instead of the API server. */
  readonly audiences?: readonly string[]
  /** What happens to the cluster or its clock before. */
  readonly before?: (lab: TokenLab) => void | Promise<void>
}

/** A way to get in, with the tokens that try it in this order. */
export interface TokenCase {
  /** With the number of the requirement. */
  readonly title: string
  readonly attempts: (lab: TokenLab) => readonly Attempt[]
}

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
