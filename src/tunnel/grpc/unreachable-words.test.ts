import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { silentLogger } from '../../core/index.ts'
import { labAuthority, labClient, labMaterial } from '../../http/tls-lab.suite.ts'
import type { CertificateAuthority } from '../../pki/index.ts'
import { connectLink, type LinkTls } from './index.ts'

let ca: CertificateAuthority
let other: CertificateAuthority
const servers: Server[] = []
beforeAll(async () => {
  ca = await labAuthority('CA')
  other = await labAuthority('other CA')
})
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function portOf(server: Server): Promise<number> {
  servers.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

/** A server that asks for client certificates of the CA. */
async function strictServer(): Promise<number> {
  const { certPem, keyPem } = await labMaterial(ca, 'server')
  const requestCert = { requestCert: true, rejectUnauthorized: true, ca: ca.bundlePem }
  return portOf(createTlsServer({ cert: certPem, key: keyPem.reveal(), ...requestCert }))
}

const whyNot = (port: number, tls: LinkTls): Promise<unknown> =>
  connectLink({
    host: '127.0.0.1',
    port,
    tls,
    metadata: {},
    capabilities: [],
    log: silentLogger,
    signal: AbortSignal.timeout(10_000),
  }).then(
    () => 'open',
    (error: Error) => error.message.replace(/^.*?: /, ''),
  )

test('a server that is not there', async () => {
  const port = await portOf(createServer())
  servers.pop()?.close()
  expect(await whyNot(port, { ca: ca.bundlePem })).toBe('connection refused')
})

test('a server that does not speak TLS', async () => {
  const port = await portOf(createServer((socket) => socket.end('HTTP/1.1 400 no\r\n\r\n')))
  expect(await whyNot(port, { ca: ca.bundlePem })).toBe('it does not speak TLS')
})

test('a server of another CA', async () => {
  const port = await strictServer()
  const words = 'its certificate is not of a CA that we trust'
  expect(await whyNot(port, { ca: other.bundlePem })).toBe(words)
})

test('a server that wants a certificate, and none is shown', async () => {
  const port = await strictServer()
  expect(await whyNot(port, { ca: ca.bundlePem })).toBe('it asks for a client certificate')
})

test('a server that does not trust the certificate', async () => {
  const port = await strictServer()
  const foreign = await labClient(other, 'agent')
  expect(await whyNot(port, { ca: ca.bundlePem, ...foreign })).toMatch(/^it (?:cut|closed) the/)
})

test('a key that belongs to another certificate, and one that is none', async () => {
  const port = await strictServer()
  const { cert } = await labClient(ca, 'agent')
  const { key } = await labClient(ca, 'agent')
  const mine = { ca: ca.bundlePem, cert }
  expect(await whyNot(port, { ...mine, key })).toBe('our key is not the one of our certificate')
  expect(await whyNot(port, { ...mine, key: 'none' })).toMatch(/^our key cannot be read/)
  expect(await whyNot(port, { ...mine, cert: 'none', key })).toMatch(/is not in PEM form$/)
})
