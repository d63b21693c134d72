/**
 * The policy that the API server adds, as the last one, to proxied content on its own origin: no script, no form, no
 * frame around it, and an opaque origin that can read nothing of the API. All policies of a response apply together,
 * so what the add-on sends itself cannot weaken it.
 */
export const sandboxPolicy = "sandbox; frame-ancestors 'none'"

/**
 * Removes `sandboxPolicy` from the end of a Content-Security-Policy header, for content that is served on an origin of
 * its own. Returns undefined if nothing remains. The add-on's own policies stay.
 */
export function withoutSandbox(value: string): string | undefined {
  if (value === sandboxPolicy) return undefined
  const suffix = `, ${sandboxPolicy}`
  return value.endsWith(suffix) ? value.slice(0, -suffix.length) : value
}
