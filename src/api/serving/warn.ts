import type { RequestCall } from './api-call.ts'

/** Kubernetes' own bounds: what is more in all is cut, text by text. */
const maxInTotal = 4_096
const maxOfOne = 256

function cutToFit(texts: readonly string[]): string[] {
  const total = texts.reduce((sum, text) => sum + text.length, 0)
  if (total <= maxInTotal) return [...texts]
  return texts.slice(0, maxInTotal / maxOfOne).map((text) => text.slice(0, maxOfOne))
}

/** A text may hold anything that a client has sent; a header takes no control characters, and bytes only. */
function headerValue(text: string): string {
  const quoted = JSON.stringify(text.replace(/[\0-\x1f\x7f]+/g, ' '))
  return `299 - ${Buffer.from(quoted).toString('latin1')}`
}

/** Sends warnings as Kubernetes does, so that kubectl shows them to its user. */
export function warn(call: RequestCall, warnings: readonly string[]): void {
  if (warnings.length === 0) return
  const before = call.response.getHeader('Warning')
  const added = cutToFit(warnings).map(headerValue)
  call.response.setHeader('Warning', [...(Array.isArray(before) ? before : []), ...added])
}
