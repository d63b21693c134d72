import type { IncomingMessage } from 'node:http'
import { Agent, request as send } from 'node:https'
import { gunzipSync } from 'node:zlib'
import type { Answer, Ask, Asker } from './ask.ts'

/** How to reach a server and prove who one is. */
export interface LiveServerParts {
  readonly address: string
  readonly ca: string
  readonly tokens: Readonly<Partial<Record<Asker, string>>>
}

/** Longer than any watch of the battery is meant to last. */
const patienceMs = 15_000

function bodyBytes(body: unknown, namespace: string): Buffer | undefined {
  if (body === undefined) return undefined
  if (body instanceof Uint8Array) return Buffer.from(body)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return Buffer.from(text.replaceAll('{ns}', namespace))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const distinctHeaders = (response: IncomingMessage): ReadonlyMap<string, readonly string[]> =>
  new Map(
    Object.entries(response.headersDistinct).map(([name, values = []]): [string, string[]] => [
      name,
      values,
    ]),
  )

/** One of the two servers, asked over HTTP/1.1 as it is, without a client library in between. */
export class LiveServer {
  readonly #address: URL
  readonly #agent: Agent
  readonly #tokens: LiveServerParts['tokens']

  constructor(parts: LiveServerParts) {
    this.#address = new URL(parts.address)
    this.#tokens = parts.tokens
    this.#agent = new Agent({ ca: parts.ca, keepAlive: true })
  }

  /** Closes the connections that are open; another request opens a new one. */
  close(): void {
    this.#agent.destroy()
  }

  /** Sends one request and waits for the whole answer; of a watch for as many events as asked for. */
  async answer(
    ask: Ask,
    namespace: string,
    onceOpen: () => Promise<void> = async () => {},
  ): Promise<Answer> {
    const response = await this.#open(ask, namespace)
    const opened = onceOpen()
    const text = await readBody(response, ask.events)
    await opened
    const events = ask.events !== undefined && response.statusCode === 200
    return {
      code: response.statusCode ?? 0,
      headers: distinctHeaders(response),
      text,
      json: parsed(text),
      ...(events && { events: eventLines(text).map(parsed) }),
    }
  }

  #open(ask: Ask, namespace: string): Promise<IncomingMessage> {
    const bytes = bodyBytes(ask.body, namespace)
    const token = this.#tokens[ask.as ?? 'admin']
    const type = ask.type ?? (bytes === undefined ? '' : 'application/json')
    return new Promise((resolve, reject) => {
      const sent = send(
        {
          host: this.#address.hostname,
          port: this.#address.port,
          agent: this.#agent,
          method: ask.method,
          path: ask.path.replaceAll('{ns}', namespace),
          headers: {
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
            ...(ask.accept !== undefined && { accept: ask.accept }),
            ...(type !== '' && { 'content-type': type }),
            ...(bytes !== undefined && { 'content-length': bytes.length }),
            ...ask.headers,
          },
        },
        resolve,
      )
      sent.setTimeout(patienceMs, () => sent.destroy(new Error('no answer')))
      sent.on('error', (cause) =>
        reject(new Error(`${ask.method} ${ask.path} got no answer: ${cause.message}`, { cause })),
      )
      sent.end(bytes)
    })
  }
}

/** Bookmarks come when a server thinks fit, but for the one that ends the initial state. */
const isPlainBookmark = (line: string): boolean =>
  line.startsWith('{"type":"BOOKMARK"') && !line.includes('k8s.io/initial-events-end')

const eventLines = (text: string): string[] =>
  text.split('\n').filter((line) => line !== '' && !isPlainBookmark(line))

function decoded(response: IncomingMessage, bytes: Buffer): string {
  const isZipped = response.headers['content-encoding'] === 'gzip'
  return (isZipped ? gunzipSync(bytes) : bytes).toString()
}

/** The whole body, or of a watch as many events as are wanted. */
async function readBody(response: IncomingMessage, events: number | undefined): Promise<string> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of response) {
      chunks.push(Buffer.from(chunk as Uint8Array))
      const isWatched = events !== undefined && response.statusCode === 200
      if (isWatched && eventLines(Buffer.concat(chunks).toString()).length >= events) break
    }
  } catch (cause) {
    if (chunks.length === 0) throw cause
  }
  return decoded(response, Buffer.concat(chunks))
}
