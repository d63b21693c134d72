/** The Services whose tokens are for this Pod. */
export interface AudienceList {
  has(audience: string): boolean
  /** Why nothing may be believed at the moment: a stable reason, or undefined. */
  readonly problem: 'audiences-unknown' | 'audiences-stale' | undefined
}

/** A list that does not change. */
export function staticAudiences(audiences: readonly string[]): AudienceList {
  const known = new Set(audiences)
  return { has: (audience) => known.has(audience), problem: undefined }
}
