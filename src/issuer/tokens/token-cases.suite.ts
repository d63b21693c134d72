import { claimCases } from './claim-cases.suite.ts'
import { clusterCases } from './cluster-cases.suite.ts'
import { signatureCases } from './signature-cases.suite.ts'
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

/** All cases, for whatever judges tokens. */
export const tokenCases: readonly TokenCase[] = [...signatureCases, ...claimCases, ...clusterCases]
