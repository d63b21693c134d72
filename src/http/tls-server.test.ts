import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import {
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../pki/index.ts'
import type { TlsMaterial } from './tls-context.ts'
import { createTlsServer, type TlsServer } from './tls-server.ts'

let material: TlsMaterial
let caPem: string
const servers: TlsServer[] = []

beforeAll(async () => {
  const now = Date.now()
  const key = await generateEcKey()
  const ca = await issueAuthorityCertificate({ commonName: 'ca', key, now, lifetimeMs: 3_600_000 })
  caPem = ca.certPem
  const serving = await issueKeyAndCertificate({
    ca: { name: 'ca', certificate: ca.certificate, bundlePem: caPem, key },
    subject: { commonName: 'server' },
    usages: ['server auth'],
    sans: ['127.0.0.1', '::1', 'localhost'],
    now,
    lifetimeMs: 3_600_000,
  })
  material = { certPem: serving.certPem, keyPem: privateKeyPem(serving.key), clientCaPem: caPem }
})
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(AbortSignal.abort())
})

async function start(): Promise<number> {
  const server = createTlsServer({
    material,
    log: silentLogger,
    onRequest: (request, response) => response.end(`${request.httpVersion} ${request.url}`),
  })
  servers.push(server)
  return server.listen([{ host: '127.0.0.1' }, { host: '::1', optional: true }], 0)
}

test('one port answers HTTP/1.1 and HTTP/2', async () => {
  const port = await start()
  const request = httpsRequest({ port, host: '127.0.0.1', ca: caPem, path: '/a' }).end()
  const [response] = await once(request, 'response')
  const [body] = await once(response, 'data')
  expect(String(body)).toBe('1.1 /a')
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca: caPem })
  const stream = session.request({ ':path': '/b' })
  const [chunk] = await once(stream, 'data')
  expect(String(chunk)).toBe('2.0 /b')
  session.close()
})
