import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { silentLogger } from '../../core/index.ts'
import type { LabCertificate } from '../../pki/certificate-lab.suite.ts'
import type { AddonSigner } from '../token/signing-key.ts'
import {
  type Forgery,
  forgedToken,
  LabBundle,
  LabClock,
  labCa,
  labLeaf,
  labSigner,
} from '../token/token-lab.suite.ts'
import { AddonTokenVerifier } from '../token/verifier.ts'
import { X5cKeys } from '../token/x5c-keys.ts'
import { staticAudiences } from './audiences.ts'
import { Guard, type GuardOptions } from './guard.ts'

/** A request as the add-on behind the guard saw it. */
export interface SeenRequest {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly body: string
  readonly trailers: readonly string[]
}

/** An add-on that answers with what it saw, and counts who connects. */
export class LabAddon {
  readonly seen: SeenRequest[] = []
  connections = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** Answers requests for another protocol; refuses them unless set. */
  onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void = (_r, socket) =>
    void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno')
  /** Answers in place of the echo. */
  onRequest: ((request: IncomingMessage, response: ServerResponse) => void) | undefined

  constructor() {
    this.#server = createServer((request, response) => {
      // A guard that breaks off is part of the tests.
      this.#answer(request, response).catch(() => response.destroy())
    })
    this.#server.on('connection', (socket) => {
      this.connections += 1
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    this.#server.on('upgrade', (request, socket, head) => {
      socket.on('error', () => {})
      this.onUpgrade(request, socket, head)
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Every value of a header of the last request, in any spelling of the name. */
  values(name: string): string[] {
    const raw = this.seen.at(-1)?.rawHeaders ?? []
    return raw.filter((_, index) => index % 2 === 1 && foldName(raw[index - 1] ?? '') === name)
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', url = '', rawHeaders, rawTrailers: trailers } = request
    const body = Buffer.concat(chunks).toString()
    this.seen.push({ method, url, rawHeaders, body, trailers })
    if (this.onRequest) this.onRequest(request, response)
    else response.end(JSON.stringify({ method, url, rawHeaders, body }))
  }
}

const foldName = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')

/** A guard in front of an add-on, with everything that tests turn. */
export interface GuardLab {
  readonly addon: LabAddon
  readonly guard: Guard
  readonly clock: LabClock
  readonly ca: LabCertificate
  readonly bundle: LabBundle
  readonly signer: AddonSigner
  readonly port: number
  readonly healthPort: number
  /** Everything that was logged, access log included. */
  readonly logged: string[]
  token(forgery?: Forgery): string
  stop(): Promise<void>
}

/** Starts a guard for the Service kube-system/dashboard on 127.0.0.1. */
export async function startGuardLab(options: Partial<GuardOptions> = {}): Promise<GuardLab> {
  const addon = new LabAddon()
  await addon.start()
  const clock = new LabClock()
  const ca = await labCa()
  const bundle = new LabBundle(ca)
  const signer = labSigner(await labLeaf(ca))
  const keys = [new X5cKeys({ bundle, serverName: 'kubernetes.default.svc', clock })]
  const logged: string[] = []
  const noting = (fields: object, message: string): void =>
    void logged.push(`${message} ${JSON.stringify(fields, asText)}`)
  const log = { ...silentLogger, error: noting, warn: noting, info: noting, debug: noting }
  const guard = new Guard({
    addresses: ['127.0.0.1'],
    ports: [{ listenPort: 0, forward: { host: '127.0.0.1', port: addon.port } }],
    health: { port: 0, probePath: '/probe' },
    verifier: new AddonTokenVerifier({ keys, clock }),
    audiences: staticAudiences(['kube-system/dashboard']),
    accessLog: { level: 'all', write: (lines) => void logged.push(lines) },
    clock,
    log,
    ...options,
  })
  await guard.start()
  const [port = 0, healthPort = 0] = guard.places.map((place) => Number(place.split(':').at(-1)))
  return {
    addon,
    guard,
    clock,
    ca,
    bundle,
    signer,
    port,
    healthPort,
    logged,
    token: (forgery = {}) => forgedToken(signer, forgery),
    stop: async () => {
      await guard.stop(AbortSignal.abort())
      await addon.stop()
    },
  }
}

const asText = (_key: string, value: unknown): unknown =>
  value instanceof Error ? `${value.name}: ${value.message}` : value

/** What came back on a raw connection. */
export interface RawAnswer {
  readonly status: number
  readonly text: string
  readonly body: string
  readonly closed: boolean
}

/** Sends bytes and reads one answer, or all that comes until the other side closes. */
export function sendRaw(
  port: number,
  bytes: string | Buffer,
  { untilClose = false } = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    const done = (closed: boolean): void => {
      socket.destroy()
      const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0)
      resolve({ status, text, body: text.slice(text.indexOf('\r\n\r\n') + 4), closed })
    }
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk
      if (!untilClose && isWhole(text)) done(false)
    })
    socket
      .once('end', () => done(true))
      .once('error', (error) => (text ? done(true) : reject(error)))
    socket.write(bytes)
  })
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = text.slice(0, end)
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length !== undefined) return text.length >= end + 4 + Number(length)
  return /\r\ntransfer-encoding: chunked/i.test(head) ? text.endsWith('0\r\n\r\n') : true
}
