import type { IncomingMessage } from 'node:http'
import { WrongUsage } from '../../core/index.ts'
import { allowedHeaders, foldHeaderName, isIdentityHeader } from '../../http/index.ts'
import type { AddonUser } from '../token/claims.ts'
import type { HeaderRules } from './read-request.ts'
import { unproven } from './refusal.ts'

/** Under which names the add-on is told its user. */
export interface IdentityOutput {
  /** `X-Authenticated-User` unless another name is wanted. */
  readonly userHeader: string
  /** Absent: groups are not told. */
  readonly groupsHeader?: string
  readonly uidHeader?: string
  /** Also as `Impersonate-*`, for add-ons that pass them on to the API server. */
  readonly impersonation?: boolean
}

/** The usual one: the name of the user and nothing else. */
export const defaultOutput: IdentityOutput = { userHeader: 'X-Authenticated-User' }

const longestValue = 4096

/** Every name under which something is told. */
export function emittedNames(output: IdentityOutput): string[] {
  const named = [output.userHeader, output.uidHeader].filter((name) => name !== undefined)
  const groups = output.groupsHeader === undefined ? [] : [output.groupsHeader]
  return [...named, ...named.map(encodingHeader), ...groups]
}

const encodingHeader = (name: string): string => `${name}-Encoding`

/** The headers that state the user, as a flat list; throws GuardRefused for what no header can carry. */
export function identityHeaders(user: AddonUser, output: IdentityOutput): string[] {
  const headers = textHeader(output.userHeader, user.user)
  if (output.uidHeader !== undefined && user.uid !== undefined)
    headers.push(...textHeader(output.uidHeader, user.uid))
  if (output.groupsHeader !== undefined)
    headers.push(output.groupsHeader, short(asciiJson(user.groups)))
  if (output.impersonation) headers.push(...impersonationHeaders(user))
  return headers
}

// A comma looks like two headers that somebody has joined, and outer spaces are lost on the way. A percent sign is
// encoded too: so no two names look alike, not even to an add-on that does not look whether they are encoded.
const plainText = /^[!-$&-+\--~](?:[ !-$&-+\--~]*[!-$&-+\--~])?$/

/** As it is where every reader takes it the same way, else percent-encoded with a second header that says so. */
function textHeader(name: string, text: string): string[] {
  if (plainText.test(text)) return [name, short(text)]
  return [name, short(percentEncoded(text)), encodingHeader(name), 'percent']
}

function percentEncoded(text: string): string {
  try {
    return encodeURIComponent(text)
  } catch {
    throw unsendable('is not Unicode')
  }
}

/** A list in one header, unambiguous whatever is in it: JSON in ASCII. */
function asciiJson(list: readonly string[]): string {
  return JSON.stringify(list).replaceAll(
    /[\x7f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** As the API server reads them: the bytes of UTF-8, one header per group. */
function impersonationHeaders({ user, uid, groups, extra = {} }: AddonUser): string[] {
  return [
    'Impersonate-User',
    rawUtf8(user),
    ...(uid === undefined ? [] : ['Impersonate-Uid', rawUtf8(uid)]),
    ...groups.flatMap((group) => ['Impersonate-Group', rawUtf8(group)]),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.flatMap((value) => [`Impersonate-Extra-${extraKey(key)}`, rawUtf8(value)]),
    ),
  ]
}

const extraKey = (key: string): string =>
  percentEncoded(key).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)

function rawUtf8(text: string): string {
  if (text === '' || text.trim() !== text || /[\0-\x1f\x7f]/.test(text))
    throw unsendable('has outer spaces or control characters')
  // Node writes each unit of a header as one byte.
  return short(Buffer.from(text, 'utf8').toString('latin1'))
}

function short(value: string): string {
  if (value.length <= longestValue) return value
  throw unsendable('is too long')
}

const unsendable = (why: string) =>
  unproven('identity-unsendable', `a name in the token ${why} and cannot be put into a header`)

/**
 * Tests whether a header claims an identity, in any spelling. `declared` are headers that the add-on needs although
 * they look like that; the names under which we state the user are never among them.
 */
export function identityNameTest(
  output: IdentityOutput,
  declared: readonly string[] = [],
): (name: string) => boolean {
  const allowed = allowedHeaders(declared)
  const ours = new Set(emittedNames(output).map(foldHeaderName))
  const taken = declared.find((name) => ours.has(foldHeaderName(name)))
  if (taken !== undefined)
    throw new WrongUsage(`cannot allow the header ${taken}: it states the user to the add-on`)
  return (name) => isIdentityHeader(name, allowed) || ours.has(foldHeaderName(name))
}

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
