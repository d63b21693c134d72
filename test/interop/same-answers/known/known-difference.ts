import type { Difference } from '../compare.ts'

/** A difference that is meant, in words for those who run clusters. */
export interface KnownDifference {
  /** What one notices. */
  readonly what: string
  readonly theirs: string
  readonly ours: string
  readonly why: string
  readonly matches: (difference: Difference) => boolean
}

/** A text of an answer; empty when it is none. */
export const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The answer as one text, whatever it is. */
export const shown = (value: unknown): string => JSON.stringify(value) ?? ''

/** True for a message, be it that of the Status or of one of its causes. */
export const isMessage = ({ at }: Difference): boolean => /(^|\.)message$/.test(at)

/** True for all that says that a request was refused, and how. */
export const isOutcome = ({ at }: Difference): boolean =>
  /^(code|body|body\.(code|reason|status|message|details.*|metadata.*))$/.test(at)
