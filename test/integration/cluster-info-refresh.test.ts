import { EventEmitter, once } from 'node:events'
import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { FollowedCluster } from '../../src/bootstrap/refresh/index.ts'
import { createKubeClient } from '../../src/client/index.ts'
import { wellKnownKinds } from '../../src/core/index.ts'
import {
  type Cluster,
  clusterLocation,
  loadContext,
  renderKubeconfig,
  withLocation,
} from '../../src/kubeconfig/index.ts'
import { privateKeyPem } from '../../src/pki/index.ts'
import { eventually } from '../support/eventually.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

/** Nothing listens there: the port is for nobody but root. */
const dead = 'https://127.0.0.1:1'

let server: InProcessServer
/** Another cluster with the CA of the first. */
let other: InProcessServer
let directory: string
let path: string
let clusterId: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-refresh-'))
  path = join(directory, 'config')
  server = await startInProcess()
  const copy = join(directory, 'other')
  await cp(join(server.dataDirectory, 'pki'), join(copy, 'pki'), { recursive: true })
  other = await startInProcess({ dataDirectory: copy, flags: ['--anonymous-auth=false'] })
  clusterId = await idOf(server)
}, 60_000)
afterAll(async () => {
  await Promise.all([server.close(), other.close()])
  await rm(directory, { recursive: true, force: true })
})

const idOf = async (one: InProcessServer): Promise<string> => {
  const answer = await (await one.admin()).get('/api/v1/namespaces/kube-system')
  return answer.object.metadata.uid ?? ''
}
const url = (one = server): string => one.serving.url
const roots = (): string => server.serving.pki.clusterCa.bundlePem

/** Writes a kubeconfig for jane, who may do next to nothing. */
async function write(cluster: Cluster, groups: readonly string[] = []): Promise<void> {
  const issued = await server.serving.pki.issueClient({ commonName: 'jane', organizations: groups })
  const user = {
    clientCertificateData: issued.certPem,
    clientKeyData: privateKeyPem(issued.key),
  }
  const text = await renderKubeconfig({
    currentContext: 'here',
    clusters: new Map([
      ['elsewhere', { server: 'https://elsewhere' }],
      ['here', cluster],
    ]),
    users: new Map([['jane', user]]),
    contexts: new Map([['here', { cluster: 'here', user: 'jane' }]]),
  })
  await writeFile(path, `# the clusters of jane\n${text}`)
}

const entry = async (): Promise<Cluster> =>
  (await loadContext({ explicitPath: path, home: '' })).cluster

async function refresh(...args: string[]) {
  const call = ['cluster-info', 'refresh', '--kubeconfig', path, '--output', 'json', ...args]
  const { code, stdout, stderr } = await runInProcess(call)
  const result = JSON.parse(stdout) as { changed?: boolean; error?: { code: string } }
  return { code, stderr, ...result }
}

async function setServer(...addresses: string[]): Promise<void> {
  const call = ['cluster-info', 'set-server', ...addresses, '--data-dir', server.dataDirectory]
  const { code, stderr } = await runInProcess(call)
  if (code !== 0) throw new Error(stderr)
}
beforeEach(() => setServer(url()), 60_000)

describe('a kubeconfig is refreshed [DISC-C8, DISC-R4]', { timeout: 60_000 }, () => {
  test('with id and every address, and nothing else in it changes', async () => {
    const second = url().replace('127.0.0.1', 'localhost')
    await setServer(second, url())
    await write({ server: url(), certificateAuthorityData: roots() })
    const before = await readFile(path, 'utf8')
    expect(await refresh()).toMatchObject({ code: 0, changed: true })
    expect(clusterLocation(await entry())).toMatchObject({ clusterId, addresses: [url(), second] })
    const after = await readFile(path, 'utf8')
    expect(after).toMatch(/^# the clusters of jane\n/)
    expect(after).toContain('https://elsewhere')
    expect(after.length).toBeGreaterThan(before.length)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await refresh()).toMatchObject({ code: 0, changed: false })
    expect(await readFile(path, 'utf8')).toBe(after)
  })

  test('by whichever address still works [DISC-R45]', async () => {
    const cluster = withLocation(
      { server: dead },
      { addresses: [dead, url()], rootsPem: roots(), clusterId },
    )
    await write(cluster)
    expect(await refresh()).toMatchObject({ code: 0, changed: true })
    expect(clusterLocation(await entry()).addresses).toEqual([url()])
  })

  test('but for addresses that do not work from here, which is told', async () => {
    await setServer(dead)
    await write({ server: url(), certificateAuthorityData: roots() })
    const { code, stderr } = await refresh()
    expect([code, stderr]).toEqual([0, expect.stringContaining('does not work from here')])
    expect(clusterLocation(await entry())).toMatchObject({ clusterId, addresses: [url()] })
  })

  test('but for its addresses, if that is wished', async () => {
    await setServer(url().replace('127.0.0.1', 'localhost'))
    await write({ server: url(), certificateAuthorityData: roots() })
    expect((await refresh('--keep-server')).code).toBe(0)
    expect((await entry()).server).toBe(url())
    expect((await refresh()).code).toBe(0)
    expect((await entry()).server).toContain('localhost')
  })

  test('again and again with --watch, until it is told to end', async () => {
    const second = url().replace('127.0.0.1', 'localhost')
    await write({ server: url(), certificateAuthorityData: roots() })
    const drain = new AbortController()
    const lines = new EventEmitter()
    const said = once(lines, 'line')
    const call = ['cluster-info', 'refresh', '--kubeconfig', path, '--watch', '--every', '1s']
    const running = runInProcess(call, {
      drain: drain.signal,
      onStdout: (text) => lines.emit('line', text),
    })
    await said
    const saidAgain = once(lines, 'line')
    await setServer(second)
    expect(String(await saidAgain)).toContain(second)
    drain.abort()
    expect((await running).code).toBe(0)
    expect((await entry()).server).toBe(second)
  })

  test('with the roots in it that a file had', async () => {
    const file = join(directory, 'roots.crt')
    await writeFile(file, roots())
    await write({ server: url(), certificateAuthority: 'roots.crt' })
    expect((await refresh()).code).toBe(0)
    expect(await entry()).toMatchObject({ certificateAuthorityData: roots() })
    expect((await entry()).certificateAuthority).toBeUndefined()
  })

  test('as its user where strangers may not ask', async () => {
    await write({ server: url(other), certificateAuthorityData: roots() })
    expect(await refresh()).toMatchObject({ code: 0, changed: true })
    expect(clusterLocation(await entry()).clusterId).toBe(await idOf(other))
  })
})

describe('what cannot be refreshed says so, and changes nothing [DISC-R48, DISC-R44]', {
  timeout: 60_000,
}, () => {
  const lost = async (cluster: Cluster, groups: readonly string[] = []) => {
    await write(cluster, groups)
    const before = await readFile(path, 'utf8')
    const { code, error, stderr } = await refresh()
    expect(code).toBe(1)
    expect(await readFile(path, 'utf8')).toBe(before)
    return { code: error?.code, stderr }
  }

  test('all addresses are gone', async () => {
    const cluster = withLocation(
      { server: dead },
      { addresses: [dead, 'https://127.0.0.1:2'], rootsPem: roots() },
    )
    const { code, stderr } = await lost(cluster)
    expect(code).toBe('ALL_ADDRESSES_GONE')
    expect(stderr).toMatch(/127\.0\.0\.1:1: .*ECONNREFUSED.*127\.0\.0\.1:2: .*ECONNREFUSED/)
    expect(stderr).toContain('sallyport join ADDRESS')
  })

  test('all roots have rotated', async () => {
    const stranger = await startInProcess()
    const { bundlePem } = stranger.serving.pki.clusterCa
    await stranger.close()
    const cluster = withLocation(
      { server: dead },
      { addresses: [dead, url()], rootsPem: bundlePem },
    )
    expect((await lost(cluster)).code).toBe('ALL_ROOTS_ROTATED')
  })

  test('another cluster answers', async () => {
    const location = { addresses: [url(other)] as const, rootsPem: roots(), clusterId }
    const { code, stderr } = await lost(withLocation({ server: '' }, location))
    expect(code).toBe('DIFFERENT_CLUSTER')
    expect(stderr).toContain(clusterId)
  })

  test('nothing would be verified', async () => {
    const { code } = await lost({ server: url(), insecureSkipTlsVerify: true })
    expect(code).toBe('LOCATION_UNVERIFIABLE')
  })

  test('whether it is the same cluster cannot be told', async () => {
    const infoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info'
    const admin = await server.admin()
    const object = (await admin.get(infoPath)).object as unknown as {
      data: Record<string, string>
    }
    const kubeconfig = object.data['kubeconfig']?.replace(/ {4}extensions:[^]*location\n/, '') ?? ''
    expect(kubeconfig).not.toContain('clusterId')
    await admin.put(infoPath, { ...object, data: { kubeconfig } })
    const cluster = withLocation(
      { server: '' },
      { addresses: [url()], rootsPem: roots(), clusterId },
    )
    expect((await lost(cluster)).code).toBe('CLUSTER_ID_UNKNOWN')
    // Who may see the namespace whose id it is can tell.
    await write(cluster, ['system:masters'])
    expect((await refresh()).code).toBe(0)
    await admin.delete(infoPath)
    await eventually('made anew', async () => (await admin.get(infoPath)).status === 200)
  })
})

describe('a client that follows its cluster [DISC-R45, DISC-R48, DISC-C9]', {
  timeout: 60_000,
}, () => {
  const ask = (followed: FollowedCluster) =>
    createKubeClient({ transport: followed.transport }).get(
      wellKnownKinds.configMap,
      { namespace: 'kube-public', name: 'cluster-info' },
      AbortSignal.timeout(60_000),
    )
  const open = async () => FollowedCluster.open(await loadContext({ explicitPath: path, home: '' }))

  test('goes where the cluster says it is, and writes that down', async () => {
    const second = url().replace('127.0.0.1', 'localhost')
    await write({ server: url(), certificateAuthorityData: roots() })
    const followed = await open()
    await ask(followed)
    await setServer(second)
    expect(await followed.refresh()).toMatchObject({ changed: true })
    expect(followed.location.addresses).toEqual([second])
    expect((await entry()).server).toBe(second)
    expect(await ask(followed)).toBeDefined()
    followed.close()
  })

  test('learns from the kubeconfig what another process has found out', async () => {
    await write({ server: dead, certificateAuthorityData: roots() })
    const followed = await open()
    await expect(ask(followed)).rejects.toMatchObject({ code: 'ALL_ADDRESSES_GONE' })
    await write({ server: url(), certificateAuthorityData: roots() })
    expect(await ask(followed)).toBeDefined()
    followed.close()
  })

  test('trusts the roots of the system beside its own, where the cluster says so [DISC-R47]', async () => {
    const call = ['cluster-info', 'set-server', url(), '--system-roots']
    await runInProcess([...call, '--data-dir', server.dataDirectory])
    await write({ server: url(), certificateAuthorityData: roots() })
    const followed = await open()
    await followed.refresh()
    expect(followed.location.systemRoots).toBe(true)
    expect(await ask(followed)).toBeDefined()
    const again = await open()
    expect(await ask(again)).toBeDefined()
    followed.close()
    again.close()
  })
})
