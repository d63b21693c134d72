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
  readonly keepsConnection: boolean
  /** How long the add-on keeps an idle connection, if it says so. */
  readonly keepAliveMs: number | undefined
}

const statusLine = /^HTTP\/1\.([01]) (\d{3})(?: ([\t\x20-\x7e\x80-\xff]*))?$/
const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/

/** Reads the head of an answer; throws AnswerUnusable for what is not strictly HTTP/1.x. */
export function parseHead(text: string): ResponseHead {
  const [first = '', ...lines] = text.split('\r\n')
  const status = statusLine.exec(first)
  if (!status) throw new AnswerUnusable('the answer is not HTTP/1.x')
  const rawHeaders: string[] = []
  const said = new Said()
  for (const line of lines) {
    const header = headerLine.exec(line)
    if (!header) throw new AnswerUnusable('the answer has a header that is none')
    const [, name = '', value = ''] = header
    const trimmed = value.trimEnd()
    rawHeaders.push(name, trimmed)
    said.note(name, trimmed)
  }
  return {
    status: Number(status[2]),
    reason: status[3] ?? '',
    rawHeaders,
    length: said.length,
    isChunked: said.isChunked,
    keepsConnection: !said.closes && (status[1] === '1' || said.keepsAlive),
    keepAliveMs: said.keepAliveMs,
  }
}

/** What headers say about the connection and the body. */
class Said {
  length: number | undefined
  isChunked = false
  closes = false
  keepsAlive = false
  keepAliveMs: number | undefined

  note(name: string, value: string): void {
    // Most headers are none of these, and their lengths tell.
    if (name.length !== 10 && name.length !== 14 && name.length !== 17) return
    switch (name.toLowerCase()) {
      case 'connection':
        this.closes ||= /(?:^|,)\s*close\s*(?:,|$)/i.test(value)
        this.keepsAlive ||= /keep-alive/i.test(value)
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
