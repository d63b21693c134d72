import { once } from 'node:events'
import { chmod, copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { sendRaw } from '../../src/addon/guard/guard-lab.suite.ts'
import {
  type AddonTokenMinter,
  addonSigningKey,
  createAddonTokenMinter,
  DedicatedKeySigner,
  ServingKeySigner,
} from '../../src/addon/token/index.ts'
import { silentLogger, systemClock } from '../../src/core/index.ts'
import { openServingCertificate, type ServingCertificate } from '../../src/pki/index.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

let server: InProcessServer
let certificate: ServingCertificate
let addon: Server
let directory: string
let minter: AddonTokenMinter
let forwardPort: number

beforeAll(async () => {
  server = await startInProcess()
  const { pki } = server.serving
  certificate = await openServingCertificate({
    ...pki.serving,
    clock: systemClock,
    log: silentLogger,
  })
  minter = createAddonTokenMinter({ signer: new ServingKeySigner(certificate), clock: systemClock })
  directory = await mkdtemp(join(tmpdir(), 'guard-'))
  await writeFile(join(directory, 'ca.crt'), pki.clusterCa.bundlePem)
  addon = createServer((request, response) => {
    response.end(JSON.stringify(request.headers))
  }).listen(0, '127.0.0.1')
  await once(addon, 'listening')
  forwardPort = (addon.address() as AddressInfo).port
})
afterAll(async () => {
  certificate.close()
  addon.close()
  await server.close()
  await rm(directory, { recursive: true })
})

const running: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of running.splice(0)) await stop()
})

const base = ['guard', '--listen-port', '0', '--health-port', '0', '--output', 'json']
const quiet = ['--listen-address', '127.0.0.1', '--log-level', 'error']
const common = (): string[] => [
  ...base,
  ...quiet,
  '--forward-port',
  String(forwardPort),
  '--ca-file',
  join(directory, 'ca.crt'),
]

async function runGuard(args: readonly string[], env: Record<string, string> = {}) {
  const drain = new AbortController()
  const told = { places: [] as string[] }
  const outcome = runInProcess(args, {
    env,
    drain: drain.signal,
    onStdout: (text) => {
      told.places = (JSON.parse(text) as { listening: string[] }).listening
    },
  })
  running.push(async () => {
    drain.abort()
    await outcome
  })
  await vi.waitFor(async () => {
    expect(told.places).not.toEqual([])
  }, 5_000)
  const [port = 0, health = 0] = told.places.map((place) => Number(place.split(':').at(-1)))
  return { port, health, places: told.places, outcome, stop: () => drain.abort() }
}

const mint = (service = 'web'): Promise<string> =>
  minter.mint({ user: 'ann', namespace: 'default', service })

async function ask(port: number, token: string): Promise<string | number> {
  const bytes = `GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const { status, body } = await sendRaw(port, bytes)
  if (status !== 200) return (JSON.parse(body) as { reason: string }).reason
  return String((JSON.parse(body) as Record<string, string>)['x-authenticated-user'])
}

describe('sallyport guard', () => {
  test("takes the proposal's name and flags, one dash too, and the serving key of an API server [ADDON-R36, ADDON-R26, ADDON-R33]", async () => {
    const flags = [
      '-listen-port',
      '0',
      '-forward-ip',
      '127.0.0.1',
      '-forward-port',
      String(forwardPort),
    ]
    const { port, stop, outcome } = await runGuard(
      [
        'forward-proxy',
        '--listen-on-pod-ip',
        ...flags,
        '--health-port',
        '0',
        '--output',
        'json',
        '--audience',
        'default/web',
        '--ca-file',
        join(directory, 'ca.crt'),
      ],
      { POD_IP: '127.0.0.1' },
    )
    expect(await ask(port, await mint())).toBe('ann')
    expect(await ask(port, await mint('other'))).toBe('wrong-audience')
    stop()
    const { code, stderr } = await outcome
    expect(code).toBe(0)
    expect(stderr).toContain('"user":"ann"')
    expect(stderr).not.toContain('eyJ')
  })

  test("refuses a client certificate of the same cluster as the token's signer [ADDON-T23]", async () => {
    const { port } = await runGuard([...common(), '--audience', 'default/web'])
    const issued = await server.serving.pki.issueClient({
      commonName: 'system:node:n1',
      organizations: ['system:nodes'],
    })
    const x5c = [issued.certificate.raw.toString('base64')]
    const signer = { current: addonSigningKey(issued.key, x5c) }
    const forger = createAddonTokenMinter({ signer, clock: systemClock })
    const forged = await forger.mint({ user: 'root', namespace: 'default', service: 'web' })
    expect(await ask(port, forged)).toBe('bad-signer')
    expect(await ask(port, await mint())).toBe('ann')
  })

  test('learns its audiences from the cluster and keys by a handshake with it [ADDON-R38, ADDON-R26]', async () => {
    const admin = await server.admin()
    const pods = '/api/v1/namespaces/default/pods'
    const spec = { containers: [{ name: 'a', image: 'a' }] }
    const metadata = { name: 'web-1', labels: { app: 'web' } }
    await admin.post(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec })
    const { port, health } = await runGuard([
      ...common(),
      '--keys',
      'handshake',
      '--pod-name',
      'web-1',
      '--namespace',
      'default',
      '--kubeconfig',
      server.serving.adminKubeconfig,
    ])
    await vi.waitFor(async () => {
      expect((await sendRaw(health, 'GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n')).status).toBe(200)
    }, 5_000)
    expect(await ask(port, await mint())).toBe('wrong-audience')
    await admin.post('/api/v1/namespaces/default/services', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ port: 80 }] },
    })
    const token = await mint()
    await vi.waitFor(async () => expect(await ask(port, token)).toBe('ann'), 5_000)
    await admin.delete('/api/v1/namespaces/default/services/web')
    await vi.waitFor(async () => expect(await ask(port, token)).toBe('wrong-audience'), 5_000)
  })

  test('takes the keys of a cluster from where it publishes them, and follows them [ADDON-R26, ADDON-P9]', async () => {
    const keyed = await startInProcess({ flags: ['--addon-token-key', 'dedicated'] })
    const ended = new AbortController()
    try {
      const { adminKubeconfig } = keyed.serving
      const parts = { values: keyed.sealed, log: silentLogger, signal: ended.signal }
      const signer = await DedicatedKeySigner.open(parts)
      const own = createAddonTokenMinter({ signer, clock: systemClock })
      const token = () => own.mint({ user: 'ann', namespace: 'default', service: 'web' })
      const args = ['--keys', 'jwks', '--audience', 'default/web', '--kubeconfig', adminKubeconfig]
      const { port } = await runGuard([...common(), ...args])
      expect(await ask(port, await token())).toBe('ann')
      expect(await ask(port, await mint())).toBe('unknown-key')
      const before = signer.current.kid
      const admin = await keyed.admin()
      const rotated = await admin.post('/addon/v1/keys/rotate', {})
      expect(rotated.status).toBe(200)
      await vi.waitFor(() => expect(signer.current.kid).not.toBe(before), 5_000)
      // It asks for strange keys once in five seconds, and has just done so.
      await vi.waitFor(async () => expect(await ask(port, await token())).toBe('ann'), 15_000)
    } finally {
      ended.abort()
      await keyed.close()
    }
  })

  test('listens on the addresses of the machine when it is told none, never on all [ADDON-R30, ADDON-R37]', async ({
    skip,
  }) => {
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ internal, scopeid }) => !internal && !scopeid)
      .map(({ address }) => address)
    if (own.length === 0) return skip('this machine has loopback addresses only')
    const ca = ['--ca-file', join(directory, 'ca.crt')]
    const { places } = await runGuard([...base, ...ca, '--audience', 'default/web'])
    const hosts = new Set(
      places.map((place) => place.replace(/:\d+$/, '').replaceAll(/[[\]]/g, '')),
    )
    expect([...hosts].sort()).toEqual(own.sort())
  })

  test.each([
    ['one with a comma behind it', { POD_IPS: '127.0.0.1,' }],
    ['an empty list and one address', { POD_IPS: '', POD_IP: ' 127.0.0.1' }],
  ])('listens on the addresses of the downward API only: %s [ADDON-R37]', async (_what, env) => {
    const ca = ['--ca-file', join(directory, 'ca.crt'), '--audience', 'default/web']
    const { places } = await runGuard([...base, ...ca], env)
    expect(places.map((place) => place.replace(/:\d+$/, ''))).toEqual(['127.0.0.1', '127.0.0.1'])
  })

  test("needs another address when the Pod's are not wanted", async () => {
    const ca = ['--ca-file', join(directory, 'ca.crt'), '--audience', 'default/web']
    const args = ['guard', ...ca, '--listen-on-pod-ip=false']
    const { code, stderr } = await runInProcess(args, { env: { POD_IP: '127.0.0.1' } })
    expect([code, stderr]).toEqual([1, expect.stringContaining('give --listen-address')])
  })

  test('shares a port with the add-on, which nobody else reaches [ADDON-R31, ADDON-R37]', async () => {
    const args = ['guard', '--listen-address', '127.0.0.2', '--listen-port', String(forwardPort)]
    const ca = ['--ca-file', join(directory, 'ca.crt'), '--audience', 'default/web']
    const { places } = await runGuard([
      ...args,
      '--health-port',
      '0',
      '--output',
      'json',
      '--forward-port',
      String(forwardPort),
      ...ca,
    ])
    expect(places[0]).toBe(`127.0.0.2:${forwardPort}`)
    const answer = await fetch(`http://127.0.0.2:${forwardPort}/`)
    expect(answer.status).toBe(403)
  })

  test.each([
    ['the wildcard', ['--listen-address', '0.0.0.0'], 'never on all'],
    [
      'an add-on that others could reach',
      ['--forward-ip', '10.0.0.1'],
      'must be a loopback address',
    ],
    ['a pair that is none', ['--forward', '80'], 'must be PORT=LOCALPORT'],
    ['a Service without a namespace', ['--audience', 'web'], 'must be namespace/name'],
    ['a header that is none', ['--user-header', 'a b'], 'must be the name of a header'],
    [
      'a header with another purpose',
      ['--user-header', 'Content_Length'],
      'the header Content_Length has another purpose',
    ],
    [
      'one header for two things',
      ['--groups-header', 'x-authenticated-user'],
      'the header x-authenticated-user would tell two things',
    ],
    [
      'a header of impersonation beside it',
      ['--impersonation', '--user-header', 'Impersonate-User'],
      'is one of those of impersonation',
    ],
    [
      'a path that nobody can ask for',
      ['--probe-path', '/a b'],
      'must be a path as requests have it',
    ],
    [
      'an add-on that is the guard',
      ['--listen-address', '127.0.0.1', '--forward', '8099=8099'],
      'would forward 127.0.0.1:8099 to itself',
    ],
    [
      'one port for two',
      ['--listen-address', '127.0.0.1', '--forward', '8099=1', '--forward', '8099=2'],
      'would listen on port 8099 twice',
    ],
    [
      'the health port for an add-on',
      ['--listen-address', '127.0.0.1', '--forward', '8081=1'],
      'would listen on port 8081 twice',
    ],
  ])('refuses %s as wrong usage', async (_what, args, message) => {
    const { code, stderr } = await runInProcess([
      'guard',
      '--audience',
      'default/web',
      '--ca-file',
      join(directory, 'ca.crt'),
      ...args,
    ])
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
  })

  test('tells all that is wrong and all that is missing at once, the options first [ADDON-R37]', async () => {
    const wrong = ['--listen-address', '0.0.0.0', '--forward', '8099=1', '--forward', '8099=2']
    const ca = ['--ca-file', '/nonexistent/ca']
    const { code, stderr } = await runInProcess(['guard', ...wrong, ...ca])
    const said = [
      'never on all',
      'on port 8099 twice',
      'does not run in a cluster',
      "the Pod's name is not known",
      'no CA can be read from /nonexistent/ca',
    ]
    const at = said.map((text) => stderr.indexOf(text))
    expect([code, at.includes(-1), at]).toEqual([2, false, at.toSorted((a, b) => a - b)])
  })

  test('tells all that is missing outside of a cluster at once', async () => {
    const place = ['--listen-address', '127.0.0.2', '--ca-file', '/nonexistent/ca']
    const { code, stderr } = await runInProcess(['guard', ...place])
    expect([code, stderr]).toEqual([1, expect.stringContaining('does not run in a cluster')])
    expect(stderr).toContain("the Pod's name is not known")
    expect(stderr).toContain('no CA can be read from /nonexistent/ca')
    expect(stderr).toContain('give --audience NAMESPACE/NAME and --ca-file FILE')
  })

  test('refuses a CA file that other users can write [SEC-R1711]', async () => {
    const file = join(directory, 'open-ca.crt')
    await copyFile(join(directory, 'ca.crt'), file)
    await chmod(file, 0o666)
    const place = ['--listen-address', '127.0.0.1', '--ca-file', file, '--audience', 'a/b']
    const { code, stderr } = await runInProcess([...base, ...place])
    expect(code).toBe(1)
    expect(stderr).toContain(`${file} cannot be trusted: other users can write it (mode 0666)`)
    expect(stderr).toContain(`chmod go-w ${file}`)
  })

  test('names the option of a port that is in use', async () => {
    const ca = ['--ca-file', join(directory, 'ca.crt'), '--audience', 'a/b']
    const place = ['--listen-address', '127.0.0.1', '--health-port', String(forwardPort)]
    const { code, stderr } = await runInProcess([...base, ...place, ...ca])
    expect([code, stderr]).toEqual([1, expect.stringContaining('another port by --health-port')])
  })

  test('says what is missing outside of a cluster', async () => {
    const ca = ['--ca-file', join(directory, 'ca.crt')]
    const place = ['--listen-address', '127.0.0.2', '--pod-name', 'a']
    const { code, stderr } = await runInProcess(['guard', ...place, ...ca])
    expect([code, stderr]).toEqual([1, expect.stringContaining('does not run in a cluster')])
    const without = await runInProcess([
      'guard',
      '--audience',
      'a/b',
      '--ca-file',
      '/nonexistent/ca',
    ])
    expect(without.stderr).toContain(
      'no CA can be read from /nonexistent/ca: there is no such file',
    )
    expect(without.stderr).toContain('--ca-file')
  })
})
