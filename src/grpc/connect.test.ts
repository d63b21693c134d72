import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { labAuthority, labClient, labMaterial } from '../http/tls-lab.suite.ts'
import type { CertificateAuthority } from '../pki/index.ts'
import { type ClientTls, GrpcConnection, UnreachableError } from './index.ts'

let ca: CertificateAuthority
let other: CertificateAuthority
const servers: Server[] = []
const connections: GrpcConnection[] = []
beforeAll(async () => {
  ca = await labAuthority('CA')
  other = await labAuthority('other CA')
})
afterEach(() => {
  for (const connection of connections.splice(0)) connection.destroy()
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

const reasonOf = async (port: number, tls: ClientTls): Promise<unknown> => {
  const target = { host: '127.0.0.1', port, tls }
  try {
    const connection = await GrpcConnection.connect(target, AbortSignal.timeout(10_000))
    connections.push(connection)
    await connection.openStream('/x', {}).response
    return 'open'
  } catch (error) {
    return error instanceof UnreachableError ? error.reason : error
  }
}

test('a server that is not there', async () => {
  const port = await portOf(createServer())
  servers.pop()?.close()
  expect(await reasonOf(port, { ca: ca.bundlePem })).toBe('connection refused')
})

test('a server that does not speak TLS', async () => {
  const port = await portOf(createServer((socket) => socket.end('HTTP/1.1 400 no\r\n\r\n')))
  expect(await reasonOf(port, { ca: ca.bundlePem })).toBe('server does not speak TLS')
})

test('a server of another CA', async () => {
  const port = await strictServer()
  const words = 'server certificate is not signed by a trusted CA'
  expect(await reasonOf(port, { ca: other.bundlePem })).toBe(words)
})

test('a server that wants a certificate, and none is shown', async () => {
  const port = await strictServer()
  expect(await reasonOf(port, { ca: ca.bundlePem })).toBe('server requires a client certificate')
})

test('a server that does not trust the certificate', async () => {
  const port = await strictServer()
  const foreign = await labClient(other, 'agent')
  expect(await reasonOf(port, { ca: ca.bundlePem, ...foreign })).toMatch(
    /^connection (?:reset|closed).*may not trust the client certificate$/,
  )
})

test('a key that belongs to another certificate, and one that is none', async () => {
  const port = await strictServer()
  const { cert } = await labClient(ca, 'agent')
  const { key } = await labClient(ca, 'agent')
  const mine = { ca: ca.bundlePem, cert }
  expect(await reasonOf(port, { ...mine, key })).toBe(
    'client key does not match the client certificate',
  )
  expect(await reasonOf(port, { ...mine, key: 'none' })).toMatch(/^cannot read the client key/)
  expect(await reasonOf(port, { ...mine, cert: 'none', key })).toMatch(/is not PEM$/)
})
