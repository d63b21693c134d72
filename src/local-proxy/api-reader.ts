import type { Readable } from 'node:stream'
import type { Transport } from '../credentials/transport/index.ts'
import { ResponseInvalid } from '../http/upstream/index.ts'

/** Far more than a page could list. */
const maxAnswerBytes = 16 * 1024 * 1024

/** Asks the API a few questions of the proxy's own, as the user. */
export class ApiReader {
  readonly #transport: Pick<Transport, 'send'>

  constructor(transport: Pick<Transport, 'send'>) {
    this.#transport = transport
  }

  /** The object at a path; `undefined` if there is none or the user may not read it. */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    return this.#ask({ method: 'GET', path, signal })
  }

  /** What the API makes of an object that is not kept, such as a review. */
  async review(path: string, object: object, signal: AbortSignal): Promise<unknown> {
    const body = Buffer.from(JSON.stringify(object))
    return this.#ask({ method: 'POST', path, body, signal })
  }

  async #ask(question: {
    readonly method: string
    readonly path: string
    readonly body?: Buffer
    readonly signal: AbortSignal
  }): Promise<unknown> {
    const { status, body } = await this.#transport.send({
      ...question,
      headers: {
        accept: 'application/json',
        ...(question.body && { 'content-type': 'application/json' }),
      },
    })
    if (status < 300) return parse(await readLimited(body))
    body.destroy()
    return undefined
  }
}

/** Counts what has been unpacked, since a small answer may stand for a large one. */
async function readLimited(body: Readable): Promise<string> {
  const chunks: Buffer[] = []
  let left = maxAnswerBytes
  for await (const chunk of body) {
    const bytes: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk))
    left -= bytes.length
    if (left < 0) throw new ResponseInvalid('a response of the API server is too large')
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString()
}

function parse(text: string): unknown {
  try {
    const answer: unknown = JSON.parse(text)
    return answer
  } catch {
    // The parser's words quote the answer, which may be a Secret.
    throw new ResponseInvalid('a response of the API server is not JSON')
  }
}
