import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createServer as createTlsServer, type Server, type TLSSocket } from 'node:tls'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { silentLogger } from '../../core/index.ts'
import type { CallRequest } from '../../grpc/index.ts'
import { labAuthority, labClient, labMaterial } from '../../http/tls-lab.suite.ts'
import type { CertificateAuthority } from '../../pki/index.ts'
import {
  allCapabilities,
  type Capability,
  duplexOf,
  join,
  type Link,
  LinkServer,
  socketStream,
} from '../link/index.ts'
import { AgentLab, LogLines } from './agent-lab.suite.ts'

let ca: CertificateAuthority
let lab: AgentLab
let server: RealServer
const sockets: Socket[] = []

beforeAll(async () => {
  ca = await labAuthority()
})

beforeEach(async () => {
  lab = await AgentLab.open()
  await lab.write('ca.crt', ca.bundlePem)
  server = new RealServer()
})

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await lab.close()
  await server.close()
})

/** A tunnel server's agent port on real TLS, which lets every dial of an agent through. */
class RealServer {
  readonly requests: CallRequest[] = []
  readonly links: Link[] = []
  #service: LinkServer | undefined
  #tls: Server | undefined
  #opened: (link: Link) => void = () => {}

  async listen(
    capabilities: readonly Capability[] = allCapabilities,
    alpn?: string,
  ): Promise<number> {
    const material = await labMaterial(ca)
    this.#service = new LinkServer({
      path: '/AgentService/Connect',
      capabilities,
      log: silentLogger,
      authenticate: (request) => {
        this.requests.push(request)
        return Promise.resolve({ metadata: { serverid: 'real', servercount: '1' } })
      },
      onLink: (link) => {
        link.start({
          dial: (dial) => {
            const [host = '', port = ''] = dial.address.split(':')
            const socket = connect({ host, port: Number(port), allowHalfOpen: true })
            const stream = socketStream(socket)
            socket.once('error', () => dial.refuse('no'))
            socket.once('connect', () => {
              const channel = dial.accept()
              if (channel) void join(channel, stream)
            })
          },
          drain: () => this.drained(),
        })
        this.links.push(link)
        this.#opened(link)
      },
    })
    this.#tls = this.#service.secureServer({
      cert: material.certPem,
      key: material.keyPem.reveal(),
      ca: ca.bundlePem,
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: [...(alpn === undefined ? [] : [alpn]), 'h2'],
    })
    this.#tls.listen(0, '127.0.0.1')
    await once(this.#tls, 'listening')
    const address = this.#tls.address()
    return typeof address === 'object' && address ? address.port : 0
  }

  drained: () => void = () => {}

  link(): Promise<Link> {
    const [open] = this.links
    if (open) return Promise.resolve(open)
    return new Promise((resolve) => {
      this.#opened = resolve
    })
  }

  async close(): Promise<void> {
    this.#service?.close()
    const tls = this.#tls
    if (!tls?.listening) return
    const closed = once(tls, 'close')
    tls.close()
    await closed
  }
}

async function identity(): Promise<string[]> {
  const { cert, key } = await labClient(ca, 'agent')
  const [certFile, keyFile] = await Promise.all([lab.write('a.crt', cert), lab.write('a.key', key)])
  return [`--agent-cert=${certFile}`, `--agent-key=${keyFile}`]
}

async function agentOf(port: number, ...argv: string[]) {
  const lines = new LogLines()
  const agent = await lab.agent([`--proxy-server-port=${port}`, ...(await identity()), ...argv], {
    log: lines.log,
  })
  await agent.start()
  await agent.connected(AbortSignal.timeout(8_000))
  return { agent, lines }
}

const never = new AbortController().signal

test('[TUN-U1] the control plane reaches a target through the agent, over mutual TLS', async () => {
  const port = await server.listen()
  const { agent } = await agentOf(port, '--agent-id=me', '--agent-identifiers=host=n1')
  const link = await server.link()
  const echo = await lab.echo()
  const channel = await link.dial(`127.0.0.1:${echo}`, { signal: never, deadlineMs: 5_000 })
  const stream = duplexOf(channel)
  const sent = randomBytes(4 * 1024 * 1024)
  const hash = createHash('sha256')
  stream.end(sent)
  for await (const chunk of stream) hash.update(chunk as Buffer)
  expect(hash.digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'))
  expect(server.requests[0]?.metadata).toMatchObject({
    agentid: ['me'],
    agentidentifiers: ['host=n1'],
  })
  const tls = server.requests[0]?.socket as TLSSocket
  expect(tls.getPeerCertificate().subject.CN).toBe('agent')
  await expect.poll(() => agent.activeConnections).toBe(0)
})

test('[TUN-U2] a target that refuses is told in the words of Go', async () => {
  await agentOf(await server.listen())
  const link = await server.link()
  const dial = link.dial('127.0.0.1:1', { signal: never, deadlineMs: 5_000 })
  await expect(dial).rejects.toMatchObject({
    reason: 'refused-by-peer',
    text: 'dial tcp 127.0.0.1:1: connect: connection refused',
  })
})

test('[TUN-R5, TUN-R9] both directions go through one link at a time', async () => {
  const port = await server.listen()
  const echo = await lab.echo()
  const { agent, lines } = await agentOf(
    port,
    '--feature-gates=NodeToMasterTraffic=true',
    '--bind-address=127.0.0.2',
    `--target=127.0.0.1:${echo}:0`,
  )
  await lines.seen('local port opened')
  const link = await server.link()
  const sent = randomBytes(2 * 1024 * 1024)
  const down = duplexOf(await link.dial(`127.0.0.1:${echo}`, { signal: never, deadlineMs: 5_000 }))
  const up = connect({
    host: '127.0.0.2',
    port: agent.nodePorts[0]?.port ?? 0,
    allowHalfOpen: true,
  })
  sockets.push(up)
  const received = await Promise.all(
    [down, up].map(async (stream) => {
      stream.end(sent)
      const chunks: Buffer[] = []
      for await (const chunk of stream) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks).equals(sent)
    }),
  )
  expect(received).toEqual([true, true])
  expect(server.links).toHaveLength(1)
  await expect.poll(() => agent.activeConnections).toBe(0)
})

test('[TUN-U1] another protocol may be offered beside h2', async () => {
  const port = await server.listen(allCapabilities, 'konnectivity')
  const { agent } = await agentOf(port, '--alpn-proto=other')
  expect(agent.servers).toEqual(['real'])
})

test.each([
  ['localhost', 'localhost'],
  ['127.0.0.1', 'none'],
])('[TUN-R17] a server given as %s sees the name %s in the outer TLS', async (host, expected) => {
  const names: string[] = []
  const material = await labMaterial(ca)
  const spy = createTlsServer(
    { cert: material.certPem, key: material.keyPem.reveal() },
    (socket) => {
      names.push(String(socket.servername || 'none'))
      socket.destroy()
    },
  )
  spy.listen(0, '127.0.0.1')
  await once(spy, 'listening')
  const address = spy.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const agent = await lab.agent([`--proxy-server-port=${port}`, `--proxy-server-host=${host}`], {
    resolve: () => Promise.resolve(['127.0.0.1']),
  })
  await agent.start()
  await expect.poll(() => names.length).toBeGreaterThan(0)
  await agent.stop(AbortSignal.abort())
  spy.close()
  expect(new Set(names)).toEqual(new Set([expected]))
})

test('[TUN-F14] a server that cannot prove its name is not used', async () => {
  const port = await server.listen()
  const lines = new LogLines()
  const agent = await lab.agent(
    [`--proxy-server-port=${port}`, '--proxy-server-name=other.example.com', ...(await identity())],
    { log: lines.log },
  )
  await agent.start()
  await lines.seen('cannot connect to a tunnel server')
  expect([agent.servers, server.links]).toEqual([[], []])
})

test('[TUN-W13, TUN-U9] a draining agent says so and serves on until its connections end', async () => {
  const port = await server.listen()
  const echo = await lab.echo()
  const { agent } = await agentOf(port)
  const link = await server.link()
  const stream = duplexOf(
    await link.dial(`127.0.0.1:${echo}`, { signal: never, deadlineMs: 5_000 }),
  )
  const drained = new Promise<void>((resolve) => {
    server.drained = resolve
  })
  const stopped = agent.stop(AbortSignal.timeout(30_000))
  await drained
  stream.write('still here')
  const [answer] = (await once(stream, 'data')) as [Buffer]
  expect(answer.toString()).toBe('still here')
  stream.end()
  stream.resume()
  await stopped
  await link.ended
})

test('[TUN-U7, TUN-U8] a server that goes is found out, and found again', async () => {
  const port = await server.listen()
  const { agent, lines } = await agentOf(port)
  ;(await server.link()).close()
  await expect.poll(() => server.links.length).toBe(2)
  await lines.seen('connected to a tunnel server', 2)
  expect(agent.servers).toEqual(['real'])
})
