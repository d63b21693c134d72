import { Socket } from 'node:net'
import type { AuthenticationRequest } from '../core/index.ts'

/** A request as Node would hand it on: raw headers as given, and the joined form of them. */
export function requestWith(
  headers: readonly (readonly [name: string, value: string])[],
  parts: Partial<AuthenticationRequest> = {},
): AuthenticationRequest {
  const joined = new Map<string, string>()
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const before = joined.get(key)
    // Node keeps the first of some headers, `authorization` among them, and joins the rest.
    if (before === undefined) joined.set(key, value)
    else if (key !== 'authorization') joined.set(key, `${before}, ${value}`)
  }
  return {
    method: 'GET',
    url: '/api',
    headers: Object.fromEntries(joined),
    rawHeaders: headers.flat(),
    socket: new Socket(),
    ...parts,
  }
}
