import type { Attributes, Authentication, Decision } from '../core/index.ts'

/** The refusal of what a credential is not meant for; `undefined` when its scope, if any, permits it. */
export function scopeDecision(
  { scope }: Pick<Authentication, 'scope'>,
  attributes: Attributes,
): Decision | undefined {
  if (!scope || scope.permits(attributes)) return undefined
  const reason = `the credential may only be used for ${scope.name}`
  return { allowed: false, denied: true, reason }
}
