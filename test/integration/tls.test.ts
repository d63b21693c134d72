import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SecureVersion } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { parseKubeconfig } from '../../src/kubeconfig/index.ts'
import {
  type CertificateAuthority,
  generateEcKey,
  issueAuthorityCertificate,
  issueKeyAndCertificate,
  privateKeyPem,
} from '../../src/pki/index.ts'
import { type HttpsCaller, requestOn } from '../support/https-caller.ts'
import { type InProcessServer, JumpingClock, startInProcess } from '../support/in-process-server.ts'

const dayMs = 24 * 3_600_000

/** The certificate that a new connection is shown; whether it is valid today is not the question. */
async function shownBy(server: InProcessServer): Promise<X509Certificate> {
  const socket = await server.as({}).socket({ rejectUnauthorized: false })
  const certificate = socket.getPeerX509Certificate()
  socket.destroy()
  if (!certificate) throw new Error('the server has shown no certificate')
  return certificate
}

/** An answer that shows whether the connection works, by any version and protocol. */
async function versionOver(
  caller: HttpsCaller,
  tls: { readonly minVersion: SecureVersion; readonly maxVersion: SecureVersion },
  protocol: string,
): Promise<number> {
  const options = { ...tls, ciphers: 'DEFAULT@SECLEVEL=0' }
  if (protocol === 'h2') {
    const session = await caller.http2(options)
    return (await requestOn(session, { ':path': '/version' })).status
  }
  const socket = await caller.socket({ ...options, ALPNProtocols: [protocol] })
  expect(socket.getProtocol()).toBe(tls.maxVersion)
  socket.end('GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1])
}

describe('one port speaks [GND-R40]', () => {
  let server: InProcessServer
  let strict: InProcessServer
  beforeAll(async () => {
    server = await startInProcess({ http2: true })
    strict = await startInProcess({ flags: ['--tls-min-version', 'VersionTLS13'] })
  })
  afterAll(() => Promise.all([server.close(), strict.close()]))

  test.each([
    ['TLSv1.2', 'http/1.1'],
    ['TLSv1.2', 'h2'],
    ['TLSv1.3', 'http/1.1'],
    ['TLSv1.3', 'h2'],
  ] as const)('%s with %s', async (version, protocol) => {
    const tls = { minVersion: version, maxVersion: version }
    expect(await versionOver(server.as({}), tls, protocol)).toBe(200)
  })

  test.each([
    ['TLS 1.1', () => server, 'TLSv1.1'],
    ['TLS 1.2 under --tls-min-version VersionTLS13', () => strict, 'TLSv1.2'],
  ] as const)('not %s', async (_name, which, version) => {
    const tls = { minVersion: version, maxVersion: version }
    await expect(versionOver(which().as({}), tls, 'http/1.1')).rejects.toThrow(/version/)
  })

  test('TLS 1.3 under --tls-min-version VersionTLS13', async () => {
    const tls = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3' } as const
    expect(await versionOver(strict.as({}), tls, 'http/1.1')).toBe(200)
  })

  test('HTTP/2 and HTTP/1.1 with the same client certificate name the same user', async () => {
    const jane = server.as(await server.issue('jane'))
    const review = { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1' }
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const overOne = await jane.post(path, review)
    const overTwo = await requestOn(
      await jane.http2(),
      { ':path': path, ':method': 'POST', 'content-type': 'application/json' },
      JSON.stringify(review),
    )
    expect(overOne.object['status']).toMatchObject({ userInfo: { username: 'jane' } })
    expect(overTwo.object['status']).toEqual(overOne.object['status'])
  })
})

describe('certificate files of the administrator [GND-R41]', () => {
  let directory: string
  let server: InProcessServer
  let ca: CertificateAuthority
  const files = () => ({ cert: join(directory, 'tls.crt'), key: join(directory, 'tls.key') })

  /** Writes a good pair, the certificate first: the pair is broken in between. */
  async function writePair(commonName: string): Promise<void> {
    const order = { ca, subject: { commonName }, usages: ['server auth'] as const }
    const sans = ['127.0.0.1']
    const made = await issueKeyAndCertificate({
      ...order,
      sans,
      now: Date.now(),
      lifetimeMs: dayMs,
    })
    await writeFile(files().cert, made.certPem)
    await writeFile(files().key, privateKeyPem(made.key).reveal())
  }

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sallyport-tls-'))
    const key = await generateEcKey()
    const order = { commonName: 'outside', key, now: Date.now(), lifetimeMs: dayMs }
    const { certificate, certPem } = await issueAuthorityCertificate(order)
    ca = { name: 'outside', certificate, bundlePem: certPem, key }
    await writePair('first')
    server = await startInProcess({
      http2: true,
      flags: ['--tls-cert-file', files().cert, '--tls-private-key-file', files().key],
    })
  })
  afterEach(async () => {
    await server.close()
    await rm(directory, { recursive: true, force: true })
  })

  test('are taken over when good ones come, and no connection is dropped', async () => {
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { rejectUnauthorized: false })
    expect((await requestOn(session, { ':path': '/livez' })).status).toBe(200)
    await writePair('second')
    await server.logged('serving certificate replaced')
    expect((await shownBy(server)).subject).toBe('CN=second')
    expect((await requestOn(session, { ':path': '/livez' })).status).toBe(200)
    session.destroy()
  })

  test.each([
    ['a certificate file of garbage', async () => writeFile(files().cert, 'garbage')],
    ['an empty key file', async () => writeFile(files().key, '')],
    ['a file that is gone', async () => rm(files().key)],
    [
      'a key of another certificate',
      async () => writeFile(files().key, privateKeyPem(await generateEcKey()).reveal()),
    ],
  ])('%s leaves the old ones in use, and is said', async (_name, spoil) => {
    await spoil()
    expect(await server.logged('unfit, the old one stays')).toContain(files().cert)
    expect((await shownBy(server)).subject).toBe('CN=first')
    await writePair('mended')
    await server.logged('serving certificate replaced')
    expect((await shownBy(server)).subject).toBe('CN=mended')
  })
})

describe('certificates of the own PKI are renewed in time [GND-R41]', () => {
  let clock: JumpingClock
  let server: InProcessServer

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    clock = new JumpingClock()
    server = await startInProcess({ clock })
  })
  afterEach(async () => {
    await server.close()
    vi.useRealTimers()
  })

  const adminCertificate = async (): Promise<X509Certificate> => {
    const path = server.serving.adminKubeconfig
    const { users } = await parseKubeconfig(await readFile(path, 'utf8'), path)
    return new X509Certificate(users.get('kubernetes-admin')?.clientCertificateData ?? '')
  }

  test.each([
    ['forward to its last third', 250 * dayMs, 'near its end'],
    ['back to before it was made', -30 * dayMs, 'not valid yet'],
  ])('the serving certificate when the clock jumps %s', async (_name, jumpMs, reason) => {
    const before = await shownBy(server)
    clock.jump(jumpMs)
    vi.advanceTimersByTime(3_600_000)
    await server.logged(`it was ${reason}`)
    await server.logged('serving certificate replaced')
    const after = await shownBy(server)
    expect(after.serialNumber).not.toBe(before.serialNumber)
    expect(Date.parse(after.validTo) - clock.now()).toBeGreaterThan(360 * dayMs)
  })

  test("the administrator's while the server runs", async () => {
    const before = await adminCertificate()
    clock.jump(250 * dayMs)
    vi.advanceTimersByTime(3_600_000)
    await vi.waitFor(async () => {
      expect((await adminCertificate()).serialNumber).not.toBe(before.serialNumber)
    })
    expect(Date.parse((await adminCertificate()).validTo) - clock.now()).toBeGreaterThan(
      360 * dayMs,
    )
  })
})

test("a start renews the administrator's certificate near its end, and not before [GND-R41]", async () => {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'sallyport-tls-'))
  const clock = new JumpingClock()
  const kubeconfigAfterStart = async (port?: number): Promise<[string, number]> => {
    const flags = port === undefined ? [] : ['--secure-port', String(port)]
    const server = await startInProcess({ dataDirectory, clock, flags })
    await server.halt()
    return [await readFile(server.serving.adminKubeconfig, 'utf8'), server.port]
  }
  const [first, port] = await kubeconfigAfterStart()
  clock.jump(200 * dayMs)
  expect((await kubeconfigAfterStart(port))[0]).toBe(first)
  clock.jump(100 * dayMs)
  expect((await kubeconfigAfterStart(port))[0]).not.toBe(first)
  await rm(dataDirectory, { recursive: true, force: true })
})
