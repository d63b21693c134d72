import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer, type Server } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { BackendUpstreams } from '../../src/addon/service-proxy/upstreams.ts'
import { keyByHandshake, keysByJwks } from '../../src/addon/token/verification-keys.ts'
import { fetchTraced } from '../../src/bootstrap/discovery/requests.ts'
import { Secret, silentLogger, systemClock } from '../../src/core/index.ts'
import { refreshTokens } from '../../src/credentials/sources/oidc-refresh.ts'
import { dial, makeSecureContext } from '../../src/credentials/transport/dial.ts'
import { tunnelThrough } from '../../src/credentials/transport/outbound-proxy.ts'
import { openSocket } from '../../src/grpc/connect.ts'
import { labAuthority, labMaterial } from '../../src/http/tls-lab.suite.ts'
import { requestStatus } from '../../src/http/upstream/index.ts'
import { fetchProviderDocument } from '../../src/issuer/relying-party/provider-keys.ts'
import {
  type CertificateAuthority,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../../src/pki/index.ts'

const host = '127.0.0.1'
const src = join(import.meta.dirname, '../../src')
let trusted: CertificateAuthority
let other: CertificateAuthority
let server: Server
let port: number
/** Bytes that a client has sent behind its handshake. */
let received: number

beforeAll(async () => {
  trusted = await labAuthority('CA')
  other = await labAuthority('other CA')
  const { certPem, keyPem } = await labMaterial(trusted)
  server = createServer({ cert: certPem, key: keyPem.reveal(), ALPNProtocols: ['h2', 'http/1.1'] })
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {})
    socket.on('data', (data: Buffer) => {
      received += data.length
      socket.end('HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n')
    })
  })
  server.on('tlsClientError', () => {})
  await once(server.listen(0, host), 'listening')
  port = (server.address() as AddressInfo).port
})
beforeEach(() => {
  received = 0
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
})
afterEach(() => void vi.unstubAllEnvs())
afterAll(() => void server.close())

type Client = (caPem: string, signal: AbortSignal) => Promise<unknown>

const bundleOf = (caPem: string) => ({
  certificates: [new X509Certificate(caPem)],
  onChange: () => {},
})
const tcp = {
  dial: async () => {
    const socket = connect(port, host)
    await once(socket, 'connect')
    return socket
  },
}

/** Every way in which this package verifies a server by TLS, by the file that connects. */
const clients: readonly (readonly [file: string, name: string, client: Client])[] = [
  [
    'addon/token/verification-keys.ts',
    'key by handshake',
    (caPem, signal) =>
      keyByHandshake(
        { host, port, serverName: 'localhost', bundle: bundleOf(caPem), clock: systemClock },
        signal,
      ),
  ],
  [
    'addon/token/verification-keys.ts',
    'JWK set of add-on tokens',
    (caPem, signal) =>
      keysByJwks({ url: `https://${host}:${port}/`, bundle: bundleOf(caPem) }, signal),
  ],
  [
    'addon/service-proxy/upstreams.ts',
    'backend with a CA',
    async (caPem, signal) => {
      const trust = { caPem, serverName: 'localhost' }
      const upstreams = new BackendUpstreams(tcp, systemClock)
      const upstream = upstreams.upstreamFor({ scheme: 'https', host, port, trust })
      await requestStatus(upstream, { method: 'GET', path: '/', headers: ['Host', host] }, signal)
    },
  ],
  [
    'http/fetch-document.ts',
    'discovery',
    (ca, signal) =>
      fetchTraced(
        { url: `https://${host}:${port}/`, timeoutMs: 5_000, signal, log: silentLogger },
        { ca },
      ),
  ],
  [
    'http/fetch-document.ts',
    'OIDC provider',
    (ca, signal) =>
      refreshTokens(
        { issuer: `https://${host}:${port}`, clientId: 'me', ca: async () => ca },
        new Secret('refresh'),
        signal,
      ),
  ],
  [
    'credentials/transport/dial.ts',
    'API server',
    async (caPem) => {
      const address = { origin: `https://${host}:${port}`, host, port, tls: true, basePath: '' }
      const opened = await dial(address, {
        proxy: undefined,
        timeoutMs: 5_000,
        secureContext: makeSecureContext(caPem, undefined),
        caPem,
        serverName: undefined,
        insecureSkipVerify: false,
        protocols: ['http/1.1'],
      })
      opened.destroy()
    },
  ],
  [
    'credentials/transport/outbound-proxy.ts',
    'outbound proxy',
    (caPem, signal) =>
      tunnelThrough(
        { kind: 'https', host, port },
        { host: 'a.example', port: 443 },
        { caPem, signal },
      ),
  ],
  [
    'http/fetch-document.ts',
    'relying party',
    (caPem) =>
      fetchProviderDocument(new URL(`https://${host}:${port}/`), {
        isAllowedAddress: () => true,
        allowHttp: 'never',
        caPem,
        timeoutMs: 5_000,
        maxBytes: 1_024,
      }),
  ],
  [
    'grpc/connect.ts',
    'tunnel server',
    async (ca, signal) => {
      const opened = await openSocket({ host, port, tls: { ca } }, signal)
      opened.destroy()
    },
  ],
]

/** Files that could connect by TLS and verify nothing, and why. */
const others: Readonly<Record<string, string>> = {
  'credentials/transport/agent.ts': 'takes its connections from dial.ts',
}

test('[SEC-R2351] the certificate of an https proxy has the name of the proxy, not that of the target', async () => {
  const { certPem, key } = await issueKeyAndCertificate({
    ca: trusted,
    subject: { commonName: 'api.example' },
    usages: ['server auth'],
    sans: ['api.example'],
    now: Date.now(),
    lifetimeMs: 3_600_000,
  })
  let connects = 0
  const proxy = createHttpsServer({ cert: certPem, key: privateKeyPem(key).reveal() })
  proxy.on('connect', (_request, socket) => {
    connects += 1
    socket.end('HTTP/1.1 200 OK\r\n\r\n')
  })
  await once(proxy.listen(0, host), 'listening')
  const at = { kind: 'https', host, port: (proxy.address() as AddressInfo).port } as const
  const options = { caPem: trusted.bundlePem, signal: AbortSignal.timeout(5_000) }
  await expect(tunnelThrough(at, { host: 'api.example', port: 443 }, options)).rejects.toThrow(
    'certificate',
  )
  expect(connects).toBe(0)
  proxy.close()
})

describe('[SEC-R2350] no environment variable turns the verification of a server off', () => {
  const isAccepted = async (client: Client, ca: CertificateAuthority): Promise<boolean> => {
    const outcome = await client(ca.bundlePem, AbortSignal.timeout(5_000)).then(
      () => 'connected',
      () => 'failed',
    )
    return outcome === 'connected' || received > 0
  }

  test.each(clients)('%s: %s', async (_file, _name, client) => {
    expect(await isAccepted(client, other)).toBe(false)
    expect(await isAccepted(client, trusted)).toBe(true)
  })

  test('every file that connects by TLS is in the table', () => {
    const connects =
      /import (?:tls\b|\{[^}]*\b(?<!type )(?:connect|request|Agent)\b[^}]*\} from 'node:(?:tls|https)')/
    const found = readdirSync(src, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !/\.(?:test|suite)\.ts$/.test(path))
      .filter((path) => connects.test(readFileSync(join(src, path), 'utf8')))
    const known = [...clients.map(([file]) => file), ...Object.keys(others)]
    expect(found.toSorted()).toEqual([...new Set(known)].toSorted())
  })
})
