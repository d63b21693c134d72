import { type ResponseHead, ResponseInvalid, type ResponseListener } from './upstream.ts'

/** Of the head of a response. */
const maxHeadBytes = 64 * 1024
const maxLineBytes = 1024
const maxTrailerBytes = 16 * 1024
/** 1xx responses before the final one; without a limit a server could send nothing else. */
const maxInterimResponses = 100
const headEnd = Buffer.from('\r\n\r\n', 'latin1')
const version = 'HTTP/1.'
const nothing: Buffer = Buffer.alloc(0)

type State =
  | 'head'
  | 'sized'
  | 'until-close'
  | 'chunk-line'
  | 'chunk'
  | 'chunk-end'
  | 'trailers'
  | 'done'
  | 'upgraded'

/** Which request the response is for. */
interface RequestKind {
  readonly isHead: boolean
  readonly isUpgrade: boolean
}

/** Parses one HTTP/1.1 response and rejects everything that two readers could read in two ways. */
export class ResponseParser {
  readonly #listener: Pick<ResponseListener, 'head' | 'body' | 'end'>
  readonly #request: RequestKind
  #state: State = 'head'
  #pending = nothing
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0
  #head: ParsedHead | undefined
  #interimResponses = 0
  readonly #trailers: string[] = []
  #trailerBytes = 0

  constructor(
    listener: Pick<ResponseListener, 'head' | 'body' | 'end'>,
    request: RequestKind = { isHead: false, isUpgrade: false },
  ) {
    this.#listener = listener
    this.#request = request
  }

  get isDone(): boolean {
    return this.#state === 'done'
  }

  /** The head of a 101 and the bytes behind it, which are those of another protocol. */
  get upgraded(): { readonly head: ResponseHead; readonly rest: Buffer } | undefined {
    if (this.#state !== 'upgraded' || !this.#head) return undefined
    return { head: this.#head, rest: this.#pending }
  }

  /** Whether the connection can carry another request once the response is done. */
  get keepsConnection(): boolean {
    return this.#head?.keepsConnection === true && isDelimited(this.#head, this.#request)
  }

  /** How long the server keeps an idle connection, if it says so. */
  get keepAliveMs(): number | undefined {
    return this.#head?.keepAliveMs
  }

  /** Whether the response is complete if the connection ends now. */
  get mayEnd(): boolean {
    return this.#state === 'until-close' || this.#state === 'done'
  }

  /** Parses the next bytes. @throws ResponseInvalid */
  take(bytes: Buffer): void {
    let rest = bytes
    while (rest.length > 0) {
      switch (this.#state) {
        case 'head':
          rest = this.#takeHead(rest)
          break
        case 'sized':
        case 'chunk':
          rest = this.#takeSized(rest)
          break
        case 'until-close':
          this.#listener.body(rest)
          return
        case 'upgraded':
          this.#pending = rest
          return
        case 'done':
          throw new ResponseInvalid('there are bytes behind the response')
        case 'chunk-line':
        case 'chunk-end':
        case 'trailers':
          rest = this.#takeLine(rest)
      }
    }
  }

  /** The connection has ended. @throws ResponseInvalid unless that ends the response too */
  close(): void {
    if (this.#state === 'until-close') this.#finish()
    else if (this.#state !== 'done') throw new ResponseInvalid('the response breaks off')
  }

  #takeHead(bytes: Buffer): Buffer {
    const all = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
    const end = all.indexOf(headEnd)
    if (end > maxHeadBytes || (end < 0 && all.length > maxHeadBytes))
      throw new ResponseInvalid('the head of the response is too long')
    if (end < 0) {
      if (!all.toString('latin1', 0, version.length).startsWith(version.slice(0, all.length)))
        throw new ResponseInvalid('the response is not HTTP/1.x')
      this.#pending = all
      return nothing
    }
    this.#pending = nothing
    const head = parseHead(all.toString('latin1', 0, end))
    if (head.status >= 200) this.#begin(head)
    else this.#takeInterim(head)
    return all.subarray(end + headEnd.length)
  }

  /** The final response is still to come, unless the server upgrades. */
  #takeInterim(head: ParsedHead): void {
    if (head.status < 100) throw new ResponseInvalid('the response has an invalid status')
    if (head.status === 101) {
      if (!this.#request.isUpgrade) throw new ResponseInvalid('the upgrade was not requested')
      this.#head = head
      this.#state = 'upgraded'
      return
    }
    this.#interimResponses += 1
    if (this.#interimResponses > maxInterimResponses)
      throw new ResponseInvalid('there are too many interim responses')
  }

  #begin(head: ParsedHead): void {
    this.#head = head
    this.#listener.head(head)
    if (hasNoBody(head, this.#request)) this.#finish()
    else if (head.isChunked) this.#state = 'chunk-line'
    else if (head.length === undefined) this.#state = 'until-close'
    else {
      this.#state = 'sized'
      this.#left = head.length
    }
  }

  #takeSized(bytes: Buffer): Buffer {
    const mine = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left)
    this.#left -= mine.length
    this.#listener.body(mine)
    if (this.#left === 0) {
      if (this.#state === 'sized') this.#finish()
      else this.#state = 'chunk-end'
    }
    return bytes.subarray(mine.length)
  }

  #takeLine(bytes: Buffer): Buffer {
    const all = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
    const end = all.indexOf('\r\n')
    const max = this.#state === 'trailers' ? maxTrailerBytes : maxLineBytes
    if (end > max || (end < 0 && all.length > max))
      throw new ResponseInvalid('a line between chunks is too long')
    if (end < 0) {
      this.#pending = all
      return nothing
    }
    this.#pending = nothing
    this.#line(all.toString('latin1', 0, end))
    return all.subarray(end + 2)
  }

  #line(line: string): void {
    if (this.#state === 'trailers') {
      if (line === '') this.#finish()
      else this.#takeTrailer(line)
    } else if (this.#state === 'chunk-end') {
      if (line !== '') throw new ResponseInvalid('a chunk is longer than its size')
      this.#state = 'chunk-line'
    } else {
      const size = /^([\da-f]{1,8})(?:[ \t]*;.*)?$/i.exec(line)?.[1]
      if (size === undefined) throw new ResponseInvalid('a chunk has an invalid size')
      this.#left = Number.parseInt(size, 16)
      this.#state = this.#left === 0 ? 'trailers' : 'chunk'
    }
  }

  #takeTrailer(line: string): void {
    this.#trailerBytes += line.length
    if (this.#trailerBytes > maxTrailerBytes) throw new ResponseInvalid('the trailers are too long')
    this.#trailers.push(...parseHeader(line))
  }

  #finish(): void {
    this.#state = 'done'
    this.#listener.end(this.#trailers)
  }
}

const hasNoBody = ({ status, length }: ResponseHead, { isHead }: RequestKind): boolean =>
  isHead || status === 204 || status === 304 || length === 0

/** Whether the response ends before its connection does. */
const isDelimited = (head: ResponseHead, request: RequestKind): boolean =>
  head.isChunked || head.length !== undefined || hasNoBody(head, request)

interface ParsedHead extends ResponseHead {
  readonly keepsConnection: boolean
  readonly keepAliveMs: number | undefined
}

const statusLine = /^HTTP\/1\.([01]) (\d{3})(?: ([\t\x20-\x7e\x80-\xff]*))?$/
const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/

function parseHead(text: string): ParsedHead {
  const [first = '', ...lines] = text.split('\r\n')
  const status = statusLine.exec(first)
  if (!status) throw new ResponseInvalid('the response is not HTTP/1.x')
  const rawHeaders: string[] = []
  const framing = new Framing()
  for (const line of lines) {
    const [name, value] = parseHeader(line)
    rawHeaders.push(name, value)
    framing.add(name, value)
  }
  return {
    status: Number(status[2]),
    reason: status[3] ?? '',
    rawHeaders,
    length: framing.length,
    isChunked: framing.isChunked,
    keepsConnection: !framing.closes && (status[1] === '1' || framing.keepsAlive),
    keepAliveMs: framing.keepAliveMs,
  }
}

function parseHeader(line: string): [name: string, value: string] {
  const header = headerLine.exec(line)
  if (!header) throw new ResponseInvalid('the response has a malformed header')
  const [, name = '', value = ''] = header
  return [name, withoutOuterSpaces(value)]
}

/** Not by `trim`, which also takes the last byte of a letter such as \u00e0 in UTF-8 for a space. */
function withoutOuterSpaces(value: string): string {
  let start = 0
  let end = value.length
  while (value[start] === ' ' || value[start] === '\t') start++
  while (end > start && (value[end - 1] === ' ' || value[end - 1] === '\t')) end--
  return value.slice(start, end)
}

/** The lengths of the names below: most headers have another one. */
const framingLengths = new Set([10, 14, 17])

/** What the headers say about the connection and the body. */
class Framing {
  length: number | undefined
  isChunked = false
  closes = false
  keepsAlive = false
  keepAliveMs: number | undefined

  add(name: string, value: string): void {
    if (!framingLengths.has(name.length)) return
    switch (name.toLowerCase()) {
      case 'connection':
        this.closes ||= /(?:^|,)\s*close\s*(?:,|$)/i.test(value)
        this.keepsAlive ||= /keep-alive/i.test(value)
        break
      case 'keep-alive':
        this.keepAliveMs = secondsIn(value)
        break
      case 'content-length':
        this.#rejectSecond()
        if (!/^\d{1,15}$/.test(value))
          throw new ResponseInvalid('the response has an invalid length')
        this.length = Number(value)
        break
      case 'transfer-encoding':
        this.#rejectSecond()
        if (value.toLowerCase() !== 'chunked')
          throw new ResponseInvalid('the response has an unsupported transfer encoding')
        this.isChunked = true
        break
      default:
    }
  }

  #rejectSecond(): void {
    if (this.length !== undefined || this.isChunked)
      throw new ResponseInvalid('the response has two lengths')
  }
}

function secondsIn(value: string): number | undefined {
  const seconds = /timeout=(\d{1,6})/.exec(value)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}
