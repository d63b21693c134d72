import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { inspect } from 'node:util'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Secret } from '../core/index.ts'
import {
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../pki/index.ts'
import type { Transport } from './transport.ts'
import { type HttpsTransportOptions, httpsTransport } from './transport.ts'

const { signal } = new AbortController()
const token = new Secret('s3cr3t-t0k3n')
const pems = { ca: '', otherCa: '', cert: '', clientCert: '' }
let serverKey = new Secret('')
let clientKey = new Secret('')
const servers: Server[] = []
const transports: Transport[] = []

beforeAll(async () => {
  const now = Date.now()
  const lifetimeMs = 3_600_000
  const key = await generateEcKey()
  const made = await issueAuthorityCertificate({ commonName: 'ca', key, now, lifetimeMs })
  const ca = { name: 'ca', certificate: made.certificate, bundlePem: made.certPem, key }
  const other = await issueAuthorityCertificate({
    commonName: 'ca',
    key: await generateEcKey(),
    now,
    lifetimeMs,
  })
  const common = { ca, now, lifetimeMs }
  const serving = await issueKeyAndCertificate({
    ...common,
    subject: { commonName: 'server' },
    usages: ['server auth'],
    sans: ['127.0.0.1', 'kubernetes'],
  })
  const client = await issueKeyAndCertificate({
    ...common,
    subject: { commonName: 'jane' },
    usages: ['client auth'],
  })
  Object.assign(pems, {
    ca: made.certPem,
    otherCa: other.certPem,
    cert: serving.certPem,
    clientCert: client.certPem,
  })
  serverKey = privateKeyPem(serving.key)
  clientKey = privateKeyPem(client.key)
})

afterEach(() => {
  for (const transport of transports.splice(0)) transport.destroy()
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ server: Server; address: string }> {
  const server = createServer(
    {
      cert: pems.cert,
      key: serverKey.reveal(),
      ca: pems.ca,
      requestCert: true,
      rejectUnauthorized: false,
    },
    answer,
  ).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return { server, address: `https://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

function transportTo(server: string, options: Partial<HttpsTransportOptions> = {}): Transport {
  const transport = httpsTransport({ server, caPem: pems.ca, ...options })
  transports.push(transport)
  return transport
}

const get = (path: string) => ({ method: 'GET', path, headers: {}, signal })

async function textOf(transport: Transport, path = '/'): Promise<string> {
  const { body } = await transport.send(get(path))
  let text = ''
  for await (const chunk of body) text += String(chunk)
  return text
}

describe('a request', () => {
  test('carries the token, asked anew each time, and cannot replace it', async () => {
    const { address } = await serve((request, response) =>
      response.end(request.headers.authorization),
    )
    const tokens = [token, new Secret('second')]
    const transport = transportTo(address, { token: () => tokens.shift() })
    const claim = { ...get('/'), headers: { authorization: 'Bearer mine' } }
    const { body } = await transport.send(claim)
    expect((await body.toArray()).join('')).toBe(`Bearer ${token.reveal()}`)
    expect(await textOf(transport)).toBe('Bearer second')
  })

  test('proves itself by the client certificate', async () => {
    const { address } = await serve((request, response) => {
      const socket = request.socket as TLSSocket
      response.end(`${socket.authorized} ${String(socket.getPeerCertificate().subject?.CN)}`)
    })
    const transport = transportTo(address, {
      clientCertPem: pems.clientCert,
      clientKeyPem: clientKey,
    })
    expect(await textOf(transport)).toBe('true jane')
  })

  test("goes below the path of the server's address, with its body and headers", async () => {
    const { address } = await serve((request, response) => {
      const groups = request.headersDistinct['impersonate-group']
      response.setHeader('x-seen', `${request.method} ${request.url} ${String(groups)}`)
      request.pipe(response)
    })
    const transport = transportTo(`${address}/clusters/one/`, {
      headers: { 'impersonate-user': 'jane', 'impersonate-group': ['a', 'b'] },
    })
    expect(transport.server).toBe(`${address}/clusters/one`)
    const body = Buffer.from('{"a":1}')
    const response = await transport.send({ ...get('/api?x=1'), method: 'POST', body })
    expect(response.headers['x-seen']).toBe('POST /clusters/one/api?x=1 a,b')
    expect((await response.body.toArray()).join('')).toBe('{"a":1}')
  })

  test('keeps its connection for the next one', async () => {
    const { server, address } = await serve((_, response) => response.end('x'))
    let connections = 0
    server.on('secureConnection', () => {
      connections++
    })
    const transport = transportTo(address)
    for (let i = 0; i < 5; i++) await textOf(transport)
    expect(connections).toBe(1)
  })

  test('that reads goes again when the kept connection turns out to be closed; one that writes does not', async () => {
    let seen = 0
    const { address } = await serve((request, response) => {
      seen++
      if (seen % 2 === 0) request.socket.destroy()
      else response.end('x')
    })
    const transport = transportTo(address)
    await textOf(transport)
    expect(await textOf(transport)).toBe('x')
    expect(seen).toBe(3)
    const write = { ...get('/'), method: 'POST', body: Buffer.from('{}') }
    await expect(transport.send(write)).rejects.toMatchObject({ code: 'CLIENT_CONNECTION_FAILED' })
    expect(seen).toBe(4)
  })

  test('is ended by its signal with the reason of the abort, before and within the answer', async () => {
    const before = new AbortController()
    const { address } = await serve((request, response) => {
      if (request.url === '/begun') response.write('x')
      else before.abort(new Error('enough'))
    })
    const transport = transportTo(address)
    const waiting = transport.send({ ...get('/'), signal: before.signal })
    await expect(waiting).rejects.toThrow('enough')
    const within = new AbortController()
    const { body } = await transport.send({ ...get('/begun'), signal: within.signal })
    within.abort()
    await expect(body.toArray()).rejects.toThrow('aborted')
  })
})

describe('a server is not believed', () => {
  test('when another CA signed its certificate', async () => {
    const { address } = await serve((_, response) => response.end())
    const transport = transportTo(address, { caPem: pems.otherCa, token: () => token })
    const error: unknown = await transport.send(get('/')).catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'CLIENT_CONNECTION_FAILED' })
    expect(inspect(error, { depth: 9 })).not.toContain(token.reveal())
  })

  test('when its certificate has another name than asked for', async () => {
    const { address } = await serve((_, response) => response.end('x'))
    const wrong = transportTo(address, { serverName: 'example.com' })
    await expect(wrong.send(get('/'))).rejects.toThrow(/does not match certificate/)
    expect(await textOf(transportTo(address, { serverName: 'kubernetes' }))).toBe('x')
  })

  test('unless one insists', async () => {
    const { address } = await serve((_, response) => response.end('x'))
    const careless = { caPem: pems.otherCa, insecureSkipTlsVerify: true }
    expect(await textOf(transportTo(address, careless))).toBe('x')
  })
})

test('a server that is not there or speaks no TLS is named in the failure', async () => {
  const tcp = createTcpServer((socket) => {
    socket
      .on('error', () => {})
      .resume()
      .end('hello')
  }).listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as AddressInfo
  const address = `https://127.0.0.1:${port}`
  const transport = transportTo(address, { token: () => token })
  await expect(transport.send(get('/'))).rejects.toThrow(`no answer from ${address}: `)
  tcp.close()
  await once(tcp, 'close')
  await expect(transport.send(get('/'))).rejects.toThrow(/ECONNREFUSED/)
})

test.each(['', 'two\nlines', 'sp ace'])('a token %j is refused and not repeated', async (value) => {
  const transport = transportTo('https://127.0.0.1:1', { token: () => new Secret(value) })
  await expect(transport.send(get('/'))).rejects.toThrow(
    /^the token is empty or has characters that no header can carry$/,
  )
})

function failureOf(attempt: () => unknown): unknown {
  try {
    return attempt()
  } catch (error) {
    return error
  }
}

describe('a transport is refused', () => {
  const whole = { server: 'https://example.com' }

  test.each([
    ['an address without TLS', { server: 'http://example.com' }, /must begin with https/],
    ['no address', { server: '' }, /must begin with https/],
    [
      'a password in the address',
      { server: 'https://me:hunter2@example.com' },
      /no user, password/,
    ],
    ['a certificate without its key', { ...whole, clientCertPem: 'x' }, /given together/],
    [
      'a key that is none',
      { ...whole, clientCertPem: 'x', clientKeyPem: new Secret('hunter2') },
      /cannot be used/,
    ],
  ])('for %s, without a word of the credential', (_, options, message) => {
    const error = failureOf(() => httpsTransport(options))
    expect(error).toMatchObject({
      code: 'CLIENT_CONFIG_INVALID',
      message: expect.stringMatching(message),
    })
    expect(inspect(error, { depth: 9 })).not.toContain('hunter2')
  })
})
