import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { labRoot } from '../../src/bootstrap/cluster-info/location.suite.ts'
import { generateBootstrapToken, tokenSecret, verifySignature } from '../../src/bootstrap/index.ts'
import { spkiPin } from '../../src/pki/index.ts'
import { eventually } from '../support/eventually.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const infoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info'

interface Shown {
  readonly changed?: boolean
  readonly clusterId: string
  readonly addresses: string[]
  readonly roots: { pin: string; subject: string; validTo: string }[]
  readonly systemRoots: boolean
  readonly signedBy: string[]
  readonly setByOperator: Record<string, boolean>
}

let server: InProcessServer
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-cluster-info-'))
  server = await startInProcess({ dataDirectory: join(directory, 'data') })
}, 60_000)
afterAll(async () => {
  await server.close()
  await rm(directory, { recursive: true, force: true })
})

async function run(...args: string[]): Promise<{ code: number; shown: Shown; stderr: string }> {
  const quick = args[0] === 'set-server' ? ['--no-probe'] : []
  const where = ['--output', 'json', '--data-dir', server.dataDirectory]
  const call = ['cluster-info', ...args, ...quick, ...where]
  const { code, stdout, stderr } = await runInProcess(call)
  return { code, stderr, shown: JSON.parse(stdout) as Shown }
}

const show = async (): Promise<Shown> => (await run('show')).shown
const own = (): string => `https://127.0.0.1:${server.port}`
const ownPin = (): string => spkiPin(server.serving.pki.clusterCa.certificate)
const clusterInfo = async () =>
  (await (await server.admin()).get(infoPath)).object as unknown as { data: Record<string, string> }

describe('cluster-info show [DISC-S5, DISC-R44]', { timeout: 60_000 }, () => {
  test('tells id, addresses, roots with pins and validity', async () => {
    const admin = await server.admin()
    const { metadata } = (await admin.get('/api/v1/namespaces/kube-system')).object
    const shown = await show()
    expect(shown).toMatchObject({
      clusterId: metadata.uid,
      addresses: [own()],
      systemRoots: false,
      signedBy: [],
      setByOperator: { addresses: false, roots: false, systemRoots: false },
    })
    expect(shown.roots).toEqual([
      {
        pin: ownPin(),
        subject: 'CN=kubernetes',
        validFrom: expect.stringMatching(/^20\d\d-.*Z$/),
        validTo: expect.stringMatching(/^20\d\d-.*Z$/),
      },
    ])
    const text = await runInProcess(['cluster-info', 'show', '--data-dir', server.dataDirectory])
    expect(text.stdout).toContain(`  ${own()}\n`)
    expect(text.stdout).toContain('signed by    no token\n')
  })
})

describe('a change by an operator [DISC-S5]', { timeout: 60_000 }, () => {
  test('is signed again by every signing token, and stays over a restart, which is told', async () => {
    const stored = {
      token: generateBootstrapToken(),
      usages: new Set(['signing'] as const),
      extraGroups: [],
    }
    const admin = await server.admin()
    await admin.post('/api/v1/namespaces/kube-system/secrets', tokenSecret(stored))
    const name = `jws-kubeconfig-${stored.token.id}`
    const isSigned = async () => {
      const { data } = await clusterInfo()
      const signature = data[name]
      if (signature === undefined) return false
      verifySignature(signature, Buffer.from(data['kubeconfig'] ?? ''), stored.token)
      return true
    }
    await eventually('signed', isSigned)
    const { code, shown } = await run('set-server', 'api.example.com', '10.0.0.2:7443')
    const addresses = ['https://api.example.com:6443', 'https://10.0.0.2:7443']
    expect([code, shown.changed, shown.addresses]).toEqual([0, true, addresses])
    await eventually('signed again', isSigned)
    expect((await show()).signedBy).toEqual([stored.token.id])
    expect((await run('set-server', ...addresses)).shown.changed).toBe(false)

    await server.halt()
    server = await startInProcess({ dataDirectory: join(directory, 'data') })
    expect(await show()).toMatchObject({ addresses, setByOperator: { addresses: true } })
    expect(await server.logged('addresses in cluster-info stay as set')).toContain('api.example')
    await eventually('signed', isSigned)
  })

  test('is warned of if it does not work from here', async () => {
    const dead = 'https://127.0.0.1:1'
    const call = ['cluster-info', 'set-server', own(), dead, '--data-dir', server.dataDirectory]
    const { code, stderr } = await runInProcess(call)
    expect([code, stderr]).toEqual([0, expect.stringContaining(`${dead} cannot be used from here`)])
    expect(stderr).not.toContain(own())
  })

  test('may be taken back', async () => {
    await run('set-server', own())
    await server.halt()
    server = await startInProcess({ dataDirectory: join(directory, 'data') })
    // A free port each time: the server has moved, and says so again.
    expect(await show()).toMatchObject({
      addresses: [own()],
      setByOperator: { addresses: false },
    })
  })

  test('adds and removes roots', async () => {
    const { certificate, pem } = await labRoot('corporate', Date.now())
    const file = join(directory, 'corporate.crt')
    await writeFile(file, pem)
    const added = await run('add-ca', file)
    expect(added.shown.roots.map(({ pin }) => pin)).toEqual([ownPin(), spkiPin(certificate)])
    expect((await run('add-ca', file)).shown.changed).toBe(false)
    const removed = await run('remove-ca', spkiPin(certificate).toUpperCase())
    expect([removed.code, removed.shown.roots.map(({ pin }) => pin)]).toEqual([0, [ownPin()]])
  })

  test('may hand over to the roots of the system [DISC-R5, DISC-R47]', async () => {
    const { shown } = await run('set-server', 'https://api.example.com', '--system-roots')
    expect([shown.addresses, shown.systemRoots]).toEqual([['https://api.example.com'], true])
    const removed = await run('remove-ca', ownPin(), '--yes')
    expect([removed.code, removed.shown.roots]).toEqual([0, []])
    const { data } = await clusterInfo()
    expect(data['kubeconfig']).not.toContain('certificate-authority-data')
    const back = join(directory, 'own.crt')
    await writeFile(back, server.serving.pki.clusterCa.bundlePem)
    await run('add-ca', back)
    const { shown: again } = await run('set-server', own(), '--no-system-roots')
    expect([again.roots.length, again.systemRoots]).toEqual([1, false])
  })
})

describe('what clients would refuse is not written [DISC-S5, DISC-R11]', {
  timeout: 60_000,
}, () => {
  test.each([
    ['an http address', ['set-server', 'http://a'], 'WRONG_USAGE'],
    ['a password in an address', ['set-server', 'https://me:secret@a'], 'WRONG_USAGE'],
    ['addresses of two paths', ['set-server', 'https://a/x', 'https://b/y'], 'DOCUMENT_INVALID'],
    ['no address', ['set-server'], 'WRONG_USAGE'],
    ['the last root removed', ['remove-ca', 'OWN', '--yes'], 'LAST_CA'],
    ['the root of the server removed', ['remove-ca', 'OWN'], 'CA_IN_USE'],
    ['a root that is not there removed', ['remove-ca', 'sha256:00'], 'NO_SUCH_CA'],
    ['a file that is none', ['add-ca', '/nonexistent'], 'CA_FILE_INVALID'],
    ['a certificate that is no CA', ['add-ca', 'LEAF'], 'NOT_A_CA'],
    ['a CA that has expired', ['add-ca', 'EXPIRED'], 'CA_EXPIRED'],
  ])('%s', async (_name, args, code) => {
    const leaf = join(directory, 'leaf.crt')
    await writeFile(leaf, await readFile(join(server.dataDirectory, 'pki', 'apiserver.crt')))
    const expired = join(directory, 'expired.crt')
    await writeFile(expired, (await labRoot('old', Date.now() - 7_200_000, 60_000)).pem)
    const words: Record<string, string> = { OWN: ownPin(), LEAF: leaf, EXPIRED: expired }
    const before = await clusterInfo()
    const call = ['cluster-info', ...args.map((word) => words[word] ?? word)]
    const { stdout, stderr } = await runInProcess([
      ...call,
      '--output',
      'json',
      '--data-dir',
      server.dataDirectory,
    ])
    expect(JSON.parse(stdout)).toMatchObject({ error: { code } })
    expect(stderr).not.toContain('secret')
    expect((await clusterInfo()).data['kubeconfig']).toBe(before.data['kubeconfig'])
  })

  test('a document that somebody broke is left alone, and made anew once deleted', async () => {
    const admin = await server.admin()
    const current = (await admin.get(infoPath)).object
    await admin.put(infoPath, { ...current, data: { kubeconfig: 'kind: Nonsense' } })
    const { code, stderr } = await runInProcess([
      ...'cluster-info show --data-dir'.split(' '),
      server.dataDirectory,
    ])
    expect([code, stderr]).toEqual([1, expect.stringContaining('does not locate a cluster')])
    await admin.delete(infoPath)
    await eventually('made anew', async () => (await show()).addresses[0] === own())
  })
})
