import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { type ClusterView, type Logger, silentLogger, systemClock } from '../../core/index.ts'
import type { ClientTls } from '../../grpc/index.ts'
import { labAuthority, labClient, labMaterial } from '../../http/tls-lab.suite.ts'
import type { CertificateAuthority } from '../../pki/index.ts'
import {
  allCapabilities,
  type Capability,
  type ConnectLinkOptions,
  connectLink,
  join,
  type Link,
  socketStream,
} from '../link/index.ts'
import { portOf } from '../ports/listen.ts'
import type { RevocationList } from './client-trust.ts'
import type { TunnelServerConfig } from './config.ts'
import { createTunnelServer, type TunnelServer } from './tunnel-server.ts'

/** How a lab's server differs from a plain one. */
export interface LabOptions {
  readonly mode?: 'grpc' | 'http-connect'
  /** Serves the front end with TLS on TCP instead of a unix socket. */
  readonly tcp?: boolean
  readonly config?: Partial<TunnelServerConfig>
  /** Agents show tokens, which this cluster reviews. */
  readonly view?: ClusterView
  /** And how often; only at first unless given. */
  readonly reviewEveryMs?: number
  readonly revocations?: RevocationList
  readonly log?: Logger
}

const withoutTraffic = { isOn: false, allowedDestinations: [], sniRoutes: [] }

/** A tunnel server with real sockets and certificates, and agents and clients to go with it. */
export class TunnelLab {
  readonly #closing: (() => unknown)[] = []
  readonly directory: string
  readonly ca: CertificateAuthority
  server!: TunnelServer
  agentIds = 0

  constructor(directory: string, ca: CertificateAuthority) {
    this.directory = directory
    this.ca = ca
  }

  get socketPath(): string {
    return joinPath(this.directory, 'front.sock')
  }

  path(name: string): string {
    return joinPath(this.directory, name)
  }

  /** Something to close at the end, the last first. */
  closeLater(close: () => unknown): void {
    this.#closing.push(close)
  }

  /** Writes a serving certificate of `ca` over the server's files. */
  async writeServing(ca = this.ca): Promise<void> {
    const { certPem, keyPem } = await labMaterial(ca, 'tunnel')
    await writeFile(this.path('server.key'), keyPem.reveal())
    await writeFile(this.path('server.crt'), certPem)
  }

  async start(options: LabOptions = {}): Promise<void> {
    await this.writeServing()
    await writeFile(this.path('ca.crt'), this.ca.bundlePem)
    const { view, revocations, log = silentLogger } = options
    this.server = createTunnelServer({
      config: this.#configOf(options),
      ...(view && { view }),
      ...(revocations && { revocations }),
      clock: systemClock,
      log,
    })
    this.closeLater(() => this.server.stop(AbortSignal.abort()))
    await this.server.start()
  }

  #configOf(options: LabOptions): TunnelServerConfig {
    const { mode = 'grpc', tcp = false, config, view, reviewEveryMs = 0 } = options
    const files = { certFile: this.path('server.crt'), keyFile: this.path('server.key') }
    const clientCaFile = this.path('ca.crt')
    const local = { host: '127.0.0.1', port: 0 }
    return {
      serverId: 'server-1',
      serverCount: 3,
      strategies: ['default'],
      agentIdentityCheck: 'none',
      dialTimeoutMs: 5_000,
      agents: {
        ...local,
        tls: view ? files : { ...files, clientCaFile },
        ...(view && {
          tokens: {
            namespace: 'ns',
            serviceAccount: 'sa',
            audience: 'aud',
            reviewEveryMs,
            cutsExpired: false,
          },
        }),
        keepaliveMs: 30_000,
      },
      frontEnd: {
        mode,
        place: tcp
          ? { ...local, tls: { ...files, clientCaFile } }
          : { path: this.socketPath, replace: true },
        keepaliveMs: 0,
      },
      health: local,
      admin: { ...local, isProfiling: false },
      nodeTraffic: withoutTraffic,
      tlsMinVersion: 'TLSv1.2',
      drainMs: 0,
      ...config,
    }
  }

  /** Opens a link as an agent does. */
  async link(
    metadata: Record<string, string> = {},
    options: Partial<ConnectLinkOptions> = {},
  ): Promise<Link> {
    const { cert, key } = await labClient(this.ca, 'agent')
    const link = await connectLink({
      host: '127.0.0.1',
      port: this.server.ports.agents,
      tls: { ca: this.ca.bundlePem, cert, key },
      metadata: { agentid: `agent-${++this.agentIds}`, ...metadata },
      capabilities: allCapabilities,
      log: silentLogger,
      signal: new AbortController().signal,
      ...options,
    })
    this.closeLater(() => link.close())
    return link
  }

  /** Connects an agent that dials what it is told to. */
  async agent(
    metadata: Record<string, string> = {},
    options: Partial<ConnectLinkOptions> & { readonly isSilent?: boolean } = {},
  ): Promise<Link> {
    const before = this.server.load.agents
    const { isSilent, ...rest } = options
    const link = await this.link(metadata, rest)
    link.start({
      dial: (dial) => {
        if (isSilent) return
        const at = dial.address.lastIndexOf(':')
        const port = Number(dial.address.slice(at + 1))
        const socket = connect({ host: dial.address.slice(0, at), port, allowHalfOpen: true })
        socket.once('error', (error) => dial.refuse(error.message))
        socket.once('connect', () => {
          const channel = dial.accept()
          if (channel) void join(channel, socketStream(socket))
          else socket.destroy()
        })
      },
      drain: () => {},
    })
    await this.until(() => this.server.load.agents > before)
    return link
  }

  /** A TCP server that does `serve` with each connection. */
  async target(serve: (socket: Socket) => void = (socket) => socket.pipe(socket)): Promise<string> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      serve(socket)
    }).listen(0, '127.0.0.1')
    this.closeLater(() => server.close())
    await once(server, 'listening')
    return `127.0.0.1:${portOf(server)}`
  }

  /** Opens a link as kube-apiserver does, on the unix socket unless `tls` is given. */
  async frontEndLink(tls?: ClientTls): Promise<Link> {
    const capabilities: readonly Capability[] = []
    const link = await connectLink({
      host: '127.0.0.1',
      port: this.server.ports.frontEnd,
      ...(!tls && { socketPath: this.socketPath }),
      tls: tls ?? 'cleartext',
      path: '/ProxyService/Proxy',
      metadata: {},
      capabilities,
      log: silentLogger,
      signal: new AbortController().signal,
    })
    this.closeLater(() => link.close())
    link.start({ dial: (dial) => dial.refuse('no'), drain: () => {} })
    return link
  }

  /** Sends a CONNECT request on the unix socket. */
  async connectClient(address: string): Promise<Socket> {
    const socket = connect({ path: this.socketPath, allowHalfOpen: true })
    socket.on('error', () => {})
    this.closeLater(() => socket.destroy())
    await once(socket, 'connect')
    socket.write(`CONNECT ${address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
    return socket
  }

  async metrics(): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${this.server.ports.health}/metrics`)
    return response.text()
  }

  /** Waits for something that no event tells of. */
  async until(isSo: () => boolean): Promise<void> {
    const deadline = Date.now() + 10_000
    while (!isSo()) {
      if (Date.now() > deadline) throw new Error('it did not become so')
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }

  /** Closes everything and makes sure that the server has kept nothing. */
  async close(): Promise<void> {
    for (const close of this.#closing.splice(0).toReversed()) await close()
    await rm(this.directory, { recursive: true })
    const left = this.server ? Object.values(this.server.load) : []
    if (left.some((count) => count !== 0)) {
      throw new Error(`the server kept something: ${JSON.stringify(this.server.load)}`)
    }
  }
}

/** A lab in a directory of its own. */
export async function openTunnelLab(): Promise<TunnelLab> {
  const directory = await mkdtemp(joinPath(tmpdir(), 'sallyport-tunnel-'))
  return new TunnelLab(directory, await labAuthority('tunnel CA'))
}
