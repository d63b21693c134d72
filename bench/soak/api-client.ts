import { Agent, request } from 'node:https'
import { token } from '../sallyport.ts'

/** An answer of the server. */
export interface Answer {
  readonly code: number
  readonly body: unknown
}

const answerMs = 30_000

/** As little of an HTTP client as the soak needs; it never repeats a request by itself. */
export class ApiClient {
  readonly #server: string
  readonly #agent: Agent

  constructor(server: string, caPem: string) {
    this.#server = server
    this.#agent = new Agent({ keepAlive: true, ca: caPem })
  }

  /** Asks once. Rejects when there is no whole answer: then nobody knows what became of it. */
  ask(method: string, path: string, body?: unknown): Promise<Answer> {
    const payload = body === undefined ? undefined : JSON.stringify(body)
    const patch = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    return new Promise((resolve, reject) => {
      const sent = request(`${this.#server}${path}`, {
        method,
        agent: this.#agent,
        headers: {
          authorization: `Bearer ${token}`,
          ...(payload && { 'content-type': patch, 'content-length': Buffer.byteLength(payload) }),
        },
        timeout: answerMs,
      })
      sent.on('timeout', () => sent.destroy(new Error(`no answer within ${answerMs} ms`)))
      sent.on('error', reject)
      sent.on('response', (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          try {
            const text = Buffer.concat(chunks).toString('utf8')
            resolve({ code: response.statusCode ?? 0, body: JSON.parse(text) })
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)))
          }
        })
      })
      sent.end(payload)
    })
  }

  /** Opens a stream of lines and hands them out as they come; resolves when it has ended. */
  lines(path: string, onLine: (line: string) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` }
      const sent = request(`${this.#server}${path}`, { agent: this.#agent, headers })
      sent.on('error', reject)
      sent.on('response', (response) => {
        let rest = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          const parts = (rest + chunk).split('\n')
          rest = parts.pop() ?? ''
          for (const line of parts) onLine(line)
        })
        response.on('error', reject)
        response.on('end', resolve)
      })
      sent.end()
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}
