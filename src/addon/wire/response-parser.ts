import { parseHead, parseHeader, type ResponseHead } from './response-head.ts'
import { AnswerUnusable } from './unusable.ts'

/** Hears an answer as it arrives. */
export interface ResponseListener {
  head(head: ResponseHead): void
  body(chunk: Buffer): void
  /** All of it has come, trailers included. */
  end(trailers: readonly string[]): void
}

/** Of the head of an answer. */
export const maxHeadBytes = 64 * 1024
const maxLineBytes = 1024
const maxTrailerBytes = 16 * 1024
/** Early hints and the like are no answer, and without a limit a server could send nothing else. */
const maxHints = 100
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

/** Reads one answer of HTTP/1.1 and refuses whatever two readers could take in two ways. */
export class ResponseParser {
  readonly #listener: ResponseListener
  readonly #isHeadRequest: boolean
  #state: State = 'head'
  #pending = nothing
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0
  #keepsConnection = true
  #keepAliveMs: number | undefined
  #hints = 0
  readonly #trailers: string[] = []
  #trailerBytes = 0

  constructor(listener: ResponseListener, isHeadRequest: boolean) {
    this.#listener = listener
    this.#isHeadRequest = isHeadRequest
  }

  get isDone(): boolean {
    return this.#state === 'done'
  }

  /** Whether the connection can carry another request once the answer is done. */
  get keepsConnection(): boolean {
    return this.#keepsConnection
  }

  /** How long an idle connection is kept by the other side, if it says so. */
  get keepAliveMs(): number | undefined {
    return this.#keepAliveMs
  }

  /** Whether the answer is complete if the connection ends now. */
  get mayEnd(): boolean {
    return this.#state === 'until-close' || this.#state === 'done'
  }

  /** Takes the next bytes; throws AnswerUnusable. */
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
        case 'done':
          throw new AnswerUnusable('there is more behind the answer')
        case 'chunk-line':
        case 'chunk-end':
        case 'trailers':
          rest = this.#takeLine(rest)
      }
    }
  }

  /** The connection has ended; throws AnswerUnusable unless that ends the answer too. */
  close(): void {
    if (this.#state === 'until-close') this.#finish()
    else if (this.#state !== 'done') throw new AnswerUnusable('the answer breaks off')
  }

  #takeHead(bytes: Buffer): Buffer {
    const all = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
    const end = all.indexOf(headEnd)
    if (end > maxHeadBytes || (end < 0 && all.length > maxHeadBytes))
      throw new AnswerUnusable('the head of the answer is too long')
    if (end < 0) {
      if (!all.toString('latin1', 0, version.length).startsWith(version.slice(0, all.length)))
        throw new AnswerUnusable('the answer is not HTTP/1.x')
      this.#pending = all
      return nothing
    }
    this.#pending = nothing
    const head = parseHead(all.toString('latin1', 0, end))
    const rest = all.subarray(end + headEnd.length)
    if (head.status >= 200) this.#begin(head)
    else this.#hear(head)
    return rest
  }

  /** The answer is still to come. */
  #hear({ status }: ResponseHead): void {
    if (status < 100) throw new AnswerUnusable('the status of the answer is none')
    if (status === 101) throw new AnswerUnusable('nobody asked for another protocol')
    this.#hints += 1
    if (this.#hints > maxHints) throw new AnswerUnusable('there are hints and no answer')
  }

  #begin(head: ResponseHead): void {
    this.#keepsConnection = head.keepsConnection
    this.#keepAliveMs = head.keepAliveMs
    this.#listener.head(head)
    const { status, length } = head
    if (this.#isHeadRequest || status === 204 || status === 304 || length === 0) this.#finish()
    else if (head.isChunked) this.#state = 'chunk-line'
    else if (length === undefined) this.#state = 'until-close'
    else {
      this.#state = 'sized'
      this.#left = length
    }
    if (this.#state === 'until-close') this.#keepsConnection = false
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
      throw new AnswerUnusable('a line between chunks is too long')
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
      if (line !== '') throw new AnswerUnusable('a chunk is longer than it says')
      this.#state = 'chunk-line'
    } else {
      const size = /^([\da-f]{1,8})(?:[ \t]*;.*)?$/i.exec(line)?.[1]
      if (size === undefined) throw new AnswerUnusable('a chunk does not say how long it is')
      this.#left = Number.parseInt(size, 16)
      this.#state = this.#left === 0 ? 'trailers' : 'chunk'
    }
  }

  #takeTrailer(line: string): void {
    this.#trailerBytes += line.length
    if (this.#trailerBytes > maxTrailerBytes) throw new AnswerUnusable('the trailers are too long')
    this.#trailers.push(...parseHeader(line))
  }

  #finish(): void {
    this.#state = 'done'
    this.#listener.end(this.#trailers)
  }
}
