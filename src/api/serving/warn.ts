import type { RequestCall } from './api-call.ts'

/** Sends warnings as Kubernetes does, so that kubectl shows them to its user. */
export function warn(call: RequestCall, warnings: readonly string[]): void {
  if (warnings.length === 0) return
  const before = call.response.getHeader('Warning')
  const texts = warnings.map((text) => `299 - ${JSON.stringify(text.replace(/[\r\n]+/g, ' '))}`)
  call.response.setHeader('Warning', [...(Array.isArray(before) ? before : []), ...texts])
}
