import { buffer } from 'node:stream/consumers'
import type { Upstream } from './upstream.ts'

/** Far more than a page could list. */
const maxAnswerBytes = 16 * 1024 * 1024

/** Asks the API a few questions of the proxy's own, as the user. */
export class ApiReader {
  readonly #upstream: Upstream

  constructor(upstream: Upstream) {
    this.#upstream = upstream
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
    const { status, body, headers } = await this.#upstream.send({
      ...question,
      headers: {
        accept: 'application/json',
        ...(question.body && { 'content-type': 'application/json' }),
      },
    })
    if (status >= 300 || Number(headers['content-length'] ?? 0) > maxAnswerBytes) {
      body.destroy()
      return undefined
    }
    const answer: unknown = JSON.parse(String(await buffer(body)))
    return answer
  }
}
