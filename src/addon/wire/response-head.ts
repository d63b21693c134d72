import { AnswerUnusable } from './unusable.ts'

/** The head of an answer, with what it says about its own end. */
export interface ResponseHead {
  readonly status: number
  readonly reason: string
  /** Flat, as they came. */
  readonly rawHeaders: string[]
  /** Of the body, if it is said. */
  readonly length: number | undefined
  readonly isChunked: boolean
  /** Whether trailers are announced. */
  readonly hasTrailers: boolean
  readonly keepsConnection: boolean
  /** How long the other side keeps an idle connection, if it says so. */
  readonly keepAliveMs: number | undefined
}

const statusLine = /^HTTP\/1\.([01]) (\d{3})(?: ([\t\x20-\x7e\x80-\xff]*))?$/
const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)$/

/** Reads the head of an answer; throws AnswerUnusable for what is not strictly HTTP/1.x. */
export function parseHead(text: string): ResponseHead {
  const [first = '', ...lines] = text.split('\r\n')
  const status = statusLine.exec(first)
  if (!status) throw new AnswerUnusable('the answer is not HTTP/1.x')
  const rawHeaders: string[] = []
  const said = new Said()
  for (const line of lines) {
    const [name, value] = parseHeader(line)
    rawHeaders.push(name, value)
    said.note(name, value)
  }
  return {
    status: Number(status[2]),
    reason: status[3] ?? '',
    rawHeaders,
    length: said.length,
    isChunked: said.isChunked,
    hasTrailers: said.hasTrailers,
    keepsConnection: !said.closes && (status[1] === '1' || said.keepsAlive),
    keepAliveMs: said.keepAliveMs,
  }
}

/** Reads one line of a head or of trailers; throws AnswerUnusable. */
export function parseHeader(line: string): [name: string, value: string] {
  const header = headerLine.exec(line)
  if (!header) throw new AnswerUnusable('the answer has a header that is none')
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

/** The lengths of the names below. */
const telling = new Set([7, 10, 14, 17])

/** What headers say about the connection and the body. */
class Said {
  length: number | undefined
  isChunked = false
  hasTrailers = false
  closes = false
  keepsAlive = false
  keepAliveMs: number | undefined

  note(name: string, value: string): void {
    // Most headers are none of these, and their lengths tell.
    if (!telling.has(name.length)) return
    switch (name.toLowerCase()) {
      case 'connection':
        this.closes ||= /(?:^|,)\s*close\s*(?:,|$)/i.test(value)
        this.keepsAlive ||= /keep-alive/i.test(value)
        break
      case 'trailer':
        this.hasTrailers = true
        break
      case 'keep-alive':
        this.keepAliveMs = secondsIn(value)
        break
      case 'content-length':
        this.#refuseSecond()
        if (!/^\d{1,15}$/.test(value)) throw new AnswerUnusable('the length of the answer is none')
        this.length = Number(value)
        break
      case 'transfer-encoding':
        this.#refuseSecond()
        if (value.toLowerCase() !== 'chunked')
          throw new AnswerUnusable('the answer is encoded in an unusual way')
        this.isChunked = true
        break
      default:
    }
  }

  #refuseSecond(): void {
    if (this.length !== undefined || this.isChunked)
      throw new AnswerUnusable('the answer says twice how long it is')
  }
}

function secondsIn(value: string): number | undefined {
  const seconds = /timeout=(\d{1,6})/.exec(value)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}
