import { badRequest } from '../core/index.ts'
import { foldHeaderName, headerPairs, SpellingCache } from './headers.ts'

/** What a header decides on. */
type Decision = 'identity' | 'framing' | 'content' | 'protocol' | 'origin' | 'audit'

interface DecidingHeader {
  readonly decides: Decision
  /** A second value is rejected here; readers of the other headers handle several values. */
  readonly single?: boolean
}

/**
 * Every request header that decides something on the API server. A name that ends in `-` stands for all
 * headers that begin with it. `test/integration/deciding-headers.test.ts` has a row for each one, and fails for a header
 * that is read and not in this list.
 */
export const decidingHeaders = {
  authorization: { decides: 'identity', single: true },
  'impersonate-user': { decides: 'identity', single: true },
  'impersonate-uid': { decides: 'identity', single: true },
  'impersonate-group': { decides: 'identity' },
  'impersonate-extra-': { decides: 'identity' },
  'x-remote-user': { decides: 'identity' },
  'x-remote-uid': { decides: 'identity' },
  'x-remote-group': { decides: 'identity' },
  'x-remote-extra-': { decides: 'identity' },
  'sec-websocket-protocol': { decides: 'identity' },
  host: { decides: 'framing', single: true },
  'content-length': { decides: 'framing', single: true },
  'transfer-encoding': { decides: 'framing', single: true },
  'content-type': { decides: 'content', single: true },
  'content-encoding': { decides: 'content', single: true },
  connection: { decides: 'protocol' },
  upgrade: { decides: 'protocol', single: true },
  expect: { decides: 'protocol', single: true },
  'sec-websocket-key': { decides: 'protocol' },
  'sec-websocket-version': { decides: 'protocol' },
  origin: { decides: 'origin' },
  referer: { decides: 'origin' },
  'sec-fetch-site': { decides: 'origin' },
  'sec-fetch-mode': { decides: 'origin' },
  'sec-fetch-dest': { decides: 'origin' },
  cookie: { decides: 'origin' },
  'service-worker': { decides: 'origin' },
  'x-forwarded-host': { decides: 'origin' },
  'kubectl-command': { decides: 'content' },
  'audit-id': { decides: 'audit' },
  'x-forwarded-for': { decides: 'audit' },
} as const satisfies Record<string, DecidingHeader>

interface HeaderRule extends DecidingHeader {
  readonly name: string
  /** Of its own if a second value is rejected, else 0. */
  readonly bit: number
  /** Why a header with this spelling of its name is rejected, whatever its value is. */
  readonly problem?: string
}

const prefixes = Object.keys(decidingHeaders).filter((name) => name.endsWith('-'))
const impersonationPrefix = 'impersonate-'
function newRule(spelt: string): HeaderRule | undefined {
  const name = spelt.toLowerCase()
  const exact = lookUp(name)
  if (exact) return { ...exact, name, bit: bitOf(name) }
  const folded = foldHeaderName(name)
  const meant = lookUp(folded)
  if (meant) return { ...meant, name, bit: 0, problem: `is an odd spelling of ${folded}` }
  if (folded.startsWith(impersonationPrefix))
    return { decides: 'identity', name, bit: 0, problem: 'is not an impersonation header' }
  return undefined
}

const rules = new SpellingCache(newRule)

const singles = Object.entries<DecidingHeader>(decidingHeaders).flatMap(([name, { single }]) =>
  single ? name : [],
)

const bitOf = (name: string): number => (singles.includes(name) ? 1 << singles.indexOf(name) : 0)

function lookUp(name: string): DecidingHeader | undefined {
  if (Object.hasOwn(decidingHeaders, name) && !name.endsWith('-'))
    return decidingHeaders[name as keyof typeof decidingHeaders]
  const prefix = prefixes.find((each) => name.length > each.length && name.startsWith(each))
  return prefix === undefined ? undefined : decidingHeaders[prefix as keyof typeof decidingHeaders]
}

// HTTP/1.1 has removed the white space around a value (RFC 9110 §5.5): what is left is part of it.
const notExact = /^[\t ]|[\t ]$|[\0-\u0008\u000a-\u001f\u007f]/

/**
 * Rejects a request with a header that decides something and that cannot be taken exactly as it was
 * sent: an odd spelling of the name, a second value where one is expected, white space or control
 * characters in an identity, or a name in `Connection` by which a proxy would remove the header.
 */
export function checkDecidingHeaders(rawHeaders: readonly string[]): void {
  let seen = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const spelt = rawHeaders[index] ?? ''
    const value = rawHeaders[index + 1] ?? ''
    const rule = rules.get(spelt)
    if (rule === undefined) continue
    if (rule.problem !== undefined)
      throw badRequest(`the header ${JSON.stringify(spelt.slice(0, 100))} ${rule.problem}`)
    if (rule.decides === 'identity' && notExact.test(value))
      throw badRequest(`the value of the header ${rule.name} has white space or control characters`)
    if (rule.name === 'connection') checkNominated(value)
    if ((seen & rule.bit) !== 0) throw badRequest(`the header ${rule.name} is there twice`)
    seen |= rule.bit
  }
}

/** Rejects trailers that would decide something: nothing is decided after the body. */
export function checkTrailers(rawTrailers: readonly string[]): void {
  for (const [spelt] of headerPairs(rawTrailers))
    if (rules.get(spelt) !== undefined)
      throw badRequest(`${JSON.stringify(spelt.slice(0, 100))} must be a header, not a trailer`)
}

function checkNominated(value: string): void {
  if (value === 'keep-alive' || value === 'close' || value === 'Upgrade') return
  for (const option of value.split(',')) {
    const name = option.trim()
    const rule = rules.get(name)
    if (rule !== undefined && rule.decides !== 'protocol')
      throw badRequest(`the header Connection names ${JSON.stringify(name.slice(0, 100))}`)
  }
}
