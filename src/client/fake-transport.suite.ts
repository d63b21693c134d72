import { Readable } from 'node:stream'
import { createKubeClient, type KubeClientOptions } from './kube-client.ts'
import type { Transport, TransportRequest, TransportResponse } from './transport.ts'

/** What a fake server says to a request; a stream is sent as it comes. */
export interface FakeAnswer {
  readonly status?: number
  readonly headers?: TransportResponse['headers']
  readonly json?: unknown
  readonly text?: string
  readonly stream?: Readable
}

/** A transport to a server that is a function, and keeps what it was asked. */
class FakeTransport implements Transport {
  readonly server = 'https://fake.example'
  readonly requests: TransportRequest[] = []
  readonly #answer: (request: TransportRequest) => FakeAnswer | Promise<FakeAnswer>

  constructor(answer: (request: TransportRequest) => FakeAnswer | Promise<FakeAnswer>) {
    this.#answer = answer
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    request.signal.throwIfAborted()
    this.requests.push(request)
    const { status = 200, headers = {}, json, text, stream } = await this.#answer(request)
    const body = stream ?? Readable.from([Buffer.from(text ?? JSON.stringify(json))])
    request.signal.addEventListener('abort', () => body.destroy(new Error('aborted')))
    return { status, headers, body }
  }

  destroy(): void {}

  /** Method and path of each request, in order. */
  get lines(): string[] {
    return this.requests.map(({ method, path }) => `${method} ${path}`)
  }
}

/** A client of a fake server. */
export function fakeClient(
  answer: (request: TransportRequest) => FakeAnswer | Promise<FakeAnswer>,
  options: Omit<KubeClientOptions, 'transport'> = {},
) {
  const transport = new FakeTransport(answer)
  return { transport, client: createKubeClient({ transport, ...options }) }
}

/** A Status as an API server sends it. */
export const failure = (code: number, reason: string, fields: object = {}): FakeAnswer => ({
  status: code,
  json: {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason,
    code,
    ...fields,
  },
})
