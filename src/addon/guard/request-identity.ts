import type { IncomingMessage } from 'node:http'
import type { AddonUser } from '../token/addon-claims.ts'
import type { HeaderRules } from './header-rules.ts'
import { type IdentityOutput, identityHeaders } from './identity-output.ts'

/**
 * Makes a request look as it would behind the sidecar: no credential and no claim of a client, but the headers that
 * state who the user is. Code that reads them then works in both places.
 */
export function stateIdentity(
  request: IncomingMessage,
  user: AddonUser,
  { rules, output }: { readonly rules: HeaderRules; readonly output: IdentityOutput },
): void {
  const stated = identityHeaders(user, output)
  const kept: string[] = []
  const { rawHeaders, headers } = request
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (rules.isIdentity(name)) delete headers[name.toLowerCase()]
    else kept.push(name, rawHeaders[index + 1] ?? '')
  }
  request.rawHeaders.splice(0, rawHeaders.length, ...kept, ...stated)
  for (let index = 0; index + 1 < stated.length; index += 2) {
    const name = (stated[index] ?? '').toLowerCase()
    const before = headers[name]
    const value = stated[index + 1] ?? ''
    headers[name] = before === undefined ? value : `${String(before)}, ${value}`
  }
}
