import type { IncomingMessage } from 'node:http'
import { forwarderHeaders } from '../../http/forward/index.ts'
import {
  endToEndHeaders,
  framingProblem,
  headerAmbiguity,
  isClimbing,
  judgeUpgrade,
  maxForwardedHeaders,
  rememberByName,
  splitTarget,
  targetProblem,
} from '../../http/index.ts'
import { GuardRefused, malformed, unproven } from './refusal.ts'

/** What becomes of a request's header, by its name. */
export interface HeaderRule {
  /** The name in lower case. */
  readonly name: string
  /** Claims an identity. */
  readonly isIdentity: boolean
  /** Goes on to the add-on. */
  readonly isKept: boolean
  /** May be there only once. */
  readonly isSingle: boolean
  /** Is an odd spelling of a header that frames the body. */
  readonly isRefused: boolean
}

/** The rules of `http/` and of identities, looked up once per spelling: clients send the same few names. */
export class HeaderRules {
  readonly of: (spelt: string) => HeaderRule
  readonly maxCount: number

  constructor(isIdentity: (name: string) => boolean, maxCount = maxForwardedHeaders) {
    this.maxCount = maxCount
    this.of = rememberByName((spelt) => ruleOf(spelt, isIdentity(spelt)))
  }

  /** Whether a header claims an identity, in any spelling. */
  isIdentity(name: string): boolean {
    return this.of(name).isIdentity
  }
}

function ruleOf(spelt: string, isIdentity: boolean): HeaderRule {
  const name = spelt.toLowerCase()
  const isHop = endToEndHeaders([spelt, '']).length === 0
  return {
    name,
    isIdentity,
    isKept: !isHop && !forwarderHeaders.has(name) && !isIdentity,
    isRefused: headerAmbiguity([spelt, '']) !== undefined,
    isSingle: headerAmbiguity([spelt, '', spelt, '']) !== undefined,
  }
}

/** What the guard takes from a request, each thing once. */
export interface GuardedRequest {
  /** The value of the only Authorization header. */
  readonly authorization: string | undefined
  /** What goes on to the add-on, as a flat list: nothing of this connection, no claim to an identity. */
  readonly headers: string[]
  readonly hasBody: boolean
}

type Request = Pick<IncomingMessage, 'rawHeaders' | 'method' | 'url' | 'httpVersion'>

/** Reads a request or refuses it; everything that is decided is decided on the raw headers. */
export function readRequest(request: Request, rules: HeaderRules): GuardedRequest {
  if (request.method === 'TRACE' || request.method === 'CONNECT')
    throw new GuardRefused(405, 'method-not-allowed', 'this method is not for add-ons')
  checkTarget(request.url ?? '')
  const { rawHeaders, httpVersion } = request
  if (rawHeaders.length > 2 * rules.maxCount)
    throw new GuardRefused(431, 'too-many-headers', `more than ${rules.maxCount} header lines`)
  const { single, headers } = sortHeaders(rawHeaders, rules)
  checkHost(single.get('host'), httpVersion)
  const transferEncoding = single.get('transfer-encoding')
  const contentLength = single.get('content-length')
  const problem = framingProblem({ httpVersion, transferEncoding, contentLength })
  if (problem !== undefined) throw malformed(problem)
  return {
    authorization: single.get('authorization'),
    headers,
    hasBody: transferEncoding !== undefined || (contentLength ?? '0') !== '0',
  }
}

interface Sorted {
  /** Of headers that may be there only once. */
  readonly single: ReadonlyMap<string, string>
  /** What goes on. */
  readonly headers: string[]
}

function sortHeaders(rawHeaders: readonly string[], rules: HeaderRules): Sorted {
  const single = new Map<string, string>()
  const headers: string[] = []
  let nominates = false
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const spelt = rawHeaders[index] ?? ''
    const value = rawHeaders[index + 1] ?? ''
    const rule = rules.of(spelt)
    if (rule.isRefused) throw malformed('a header is an odd spelling of another one')
    if (rule.isSingle) noteSingle(single, rule.name, value)
    else if (rule.name === 'connection') nominates ||= !harmless.has(value.toLowerCase())
    if (rule.isKept) headers.push(spelt, value)
  }
  return { single, headers: nominates ? withoutNominated(rawHeaders, headers) : headers }
}

const harmless = new Set(['keep-alive', 'close', 'upgrade', 'keep-alive, upgrade', ''])

/** Two readers that each take another one of these see two requests, or two users. */
function noteSingle(seen: Map<string, string>, name: string, value: string): void {
  if (seen.has(name)) {
    if (name !== 'authorization') throw malformed(`the header ${name} is there twice`)
    throw unproven('ambiguous-token', 'there are two Authorization headers')
  }
  seen.set(name, value)
}

/** Of what we keep, what the client has not nominated as its connection's own. */
function withoutNominated(rawHeaders: readonly string[], kept: readonly string[]): string[] {
  const connection: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.toLowerCase() === 'connection') connection.push(name, rawHeaders[index + 1] ?? '')
  }
  return endToEndHeaders([...connection, ...kept])
}

/** Only a path, which goes on byte for byte: two slashes in front could choose another host. */
function checkTarget(url: string): void {
  const problem = targetProblem(url)
  if (problem !== undefined) throw malformed(problem)
  if (url.startsWith('//')) throw malformed('the target of a request must be a path')
  if (isClimbing(splitTarget(url).path)) throw malformed('the path climbs, or ends at a null byte')
}

/** The protocol that a request wants to change to; throws GuardRefused unless it may be forwarded. */
export function protocolOf(request: IncomingMessage): string {
  const verdict = judgeUpgrade(request)
  if (verdict.problem === undefined) return verdict.protocol
  if (verdict.status === 400) throw malformed(verdict.problem)
  throw new GuardRefused(verdict.status, 'websocket-version', verdict.problem, verdict.headers)
}

const hostForm = /^(?:[\w.~!$&'()*+;=%-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i

function checkHost(host: string | undefined, version: string): void {
  if (host === undefined && version === '1.0') return
  if (host === undefined || !hostForm.test(host)) throw malformed('the Host header is not a host')
}
