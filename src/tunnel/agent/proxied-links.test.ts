import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createSecureServer, type Http2SecureServer } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { labAuthority, labMaterial } from '../../http/tls-lab.suite.ts'
import type { CertificateAuthority } from '../../pki/index.ts'
import { AgentLab, LogLines } from './agent-lab.suite.ts'

let ca: CertificateAuthority
let lab: AgentLab
let lines: LogLines
let server: Http2SecureServer
let proxy: Server
/** What the proxy was asked for, and what the server saw of each link. */
let asked: string[]
let seen: { authority: string | undefined; name: string | undefined }[]
let refusal: number | undefined
const sockets = new Set<Socket>()

const portOf = (listening: { address(): unknown }): number =>
  (listening.address() as AddressInfo).port

beforeAll(async () => {
  ca = await labAuthority()
})

beforeEach(async () => {
  asked = []
  seen = []
  refusal = undefined
  lines = new LogLines()
  lab = await AgentLab.open()
  await lab.write('ca.crt', ca.bundlePem)
  const { certPem, keyPem } = await labMaterial(ca)
  server = createSecureServer({ cert: certPem, key: keyPem.reveal() })
  server.on('stream', (stream, headers) => {
    const socket = stream.session?.socket as TLSSocket | undefined
    seen.push({ authority: headers[':authority'], name: socket?.servername || undefined })
    stream.on('error', () => {})
    stream.respond({ 'content-type': 'application/grpc', serverid: 'a', servercount: '1' })
  })
  proxy = createServer().on('connect', (request, near: Socket) => {
    asked.push(request.url ?? '')
    if (refusal !== undefined) {
      near.end(`HTTP/1.1 ${refusal} No\r\n\r\n`)
      return
    }
    const far = connect(portOf(server), '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    near.write('HTTP/1.1 200 Connected\r\n\r\n')
    near.pipe(far).pipe(near)
  })
  for (const each of [server, proxy]) await once(each.listen(0, '127.0.0.1'), 'listening')
})

afterEach(async () => {
  await lab.close()
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  for (const each of [server, proxy]) each.close()
})

async function start(argv: readonly string[], env: Readonly<Record<string, string>>) {
  const port = `--proxy-server-port=${portOf(server)}`
  const resolve = async (host: string): Promise<readonly string[]> => {
    if (host === 'localhost') return ['127.0.0.1']
    throw new Error(`nobody here knows ${host}`)
  }
  const agent = await lab.agent([port, ...argv], { env, resolve, log: lines.log })
  await agent.start()
  return agent
}

const limit = (): AbortSignal => AbortSignal.timeout(4_000)
const faraway = ['--proxy-server-host=faraway', '--proxy-server-name=localhost']
const httpsProxy = () => ({ HTTPS_PROXY: `http://127.0.0.1:${portOf(proxy)}` })
const reasons = (): string =>
  lines.lines.map(({ fields }) => String((fields as { err?: unknown }).err)).join('\n')

test('[TUN-W28] HTTPS_PROXY leads to a server whose name only the proxy knows', async () => {
  const agent = await start(faraway, httpsProxy())
  await agent.connected(limit())
  expect(asked).toEqual([`faraway:${portOf(server)}`])
  expect(agent.servers).toEqual(['a'])
})

test.each([
  ['NO_PROXY names the server', { NO_PROXY: 'localhost' }],
  ['the server is on this machine', {}],
])('[TUN-W28] no proxy is used where %s', async (_name, more) => {
  const agent = await start(['--proxy-server-host=localhost'], { ...httpsProxy(), ...more })
  await agent.connected(limit())
  expect(asked).toEqual([])
})

test('[TUN-W28] a proxy that refuses is named, and tried again', async () => {
  refusal = 403
  const agent = await start(faraway, httpsProxy())
  await lines.seen('cannot connect to a tunnel server')
  expect(reasons()).toMatch(/the proxy http:\/\/127\.0\.0\.1:\d+ does not connect us.*403/)
  refusal = undefined
  await agent.connected(limit())
})

test('[TUN-W28] with a proxy that cannot be understood nobody is connected to', async () => {
  await start(['--proxy-server-host=far.test'], { HTTPS_PROXY: 'ftp://user:secret@there' })
  await lines.seen('cannot find the way to a tunnel server')
  expect(reasons()).toContain('HTTPS_PROXY must be an http, https or socks5 URL')
  expect(reasons()).not.toContain('secret')
  expect([asked, seen]).toEqual([[], []])
})

test('[TUN-R17] what stands between the ends can choose by name: in TLS, and as the authority within', async () => {
  const agent = await start(['--proxy-server-host=localhost'], {})
  await agent.connected(limit())
  expect(seen).toEqual([{ authority: 'localhost', name: 'localhost' }])
})

test('[TUN-F14] an address is no name in TLS, and the authority with its port', async () => {
  const agent = await start([], {})
  await agent.connected(limit())
  expect(seen).toEqual([{ authority: `127.0.0.1:${portOf(server)}`, name: undefined }])
})
