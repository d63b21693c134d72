import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FollowedCluster } from '../../src/bootstrap/refresh/index.ts'
import { createKubeClient, transportFromKubeconfig } from '../../src/client/index.ts'
import { Secret, wellKnownKinds } from '../../src/core/index.ts'
import {
  clusterLocation,
  type KubeconfigUser,
  loadContext,
  makeKubeconfig,
  type NewCredential,
  parseKubeconfig,
  renderKubeconfig,
  resolveContext,
} from '../../src/kubeconfig/index.ts'
import { parseCertificates, privateKeyPem, spkiPin } from '../../src/pki/index.ts'
import { eventually } from '../support/eventually.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

const key = { namespace: 'default', name: 'counter' }
const { configMap } = wellKnownKinds
const counterPath = '/api/v1/namespaces/default/configmaps/counter'
const oneRequest = { connection: 'close' }
const adaToken = 'a-token-that-outlives-any-ca'

let server: InProcessServer
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-ca-rotation-'))
  const tokens = join(directory, 'tokens.csv')
  await writeFile(tokens, `${adaToken},ada,1,system:masters\n`)
  server = await startInProcess({ flags: ['--token-auth-file', tokens] })
}, 60_000)
afterAll(async () => {
  await server.close()
  await rm(directory, { recursive: true, force: true })
})

/** A kubeconfig of an administrator that trusts the roots of this moment. */
async function writeKubeconfig(name: string, credential: NewCredential): Promise<string> {
  const { pki, url } = server.serving
  const path = join(directory, `${name}.kubeconfig`)
  const { bundlePem: caPem } = pki.clusterCa
  const facts = { clusterName: 'here', server: url, caPem, userName: name }
  const config = makeKubeconfig({ ...facts, ...credential })
  await writeFile(path, `# kept\n${await renderKubeconfig(config)}`)
  return path
}

/** With a certificate of the CA that signs now. */
async function kubeconfigFor(name: string): Promise<string> {
  const order = { commonName: name, organizations: ['system:masters'] }
  const { certPem, key: made } = await server.serving.pki.issueClient(order)
  return writeKubeconfig(name, { clientCertPem: certPem, clientKeyPem: privateKeyPem(made) })
}

const credentialOf = ({ clientCertificateData: cert, clientKeyData: key }: KubeconfigUser) => ({
  cert: cert ?? '',
  key: key?.reveal() ?? '',
})

const rotate = async (stage: string, ...more: string[]) => {
  const call = ['pki', 'rotate-ca', stage, '--output', 'json', '--data-dir', server.dataDirectory]
  const { code, stdout, stderr } = await runInProcess([...call, ...more])
  return { code, stderr, report: JSON.parse(stdout) as Record<string, unknown> }
}

/** Reads, writes and watches without a pause, and counts what fails. */
class BusyClient {
  readonly failures: unknown[] = []
  reads = 0
  events = 0
  readonly #ending = new AbortController()
  readonly #running: Promise<unknown>

  constructor(transport: FollowedCluster['transport']) {
    const client = createKubeClient({ transport })
    this.#running = Promise.all([this.#read(client), this.#watch(client)])
  }

  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#running
  }

  async #read(client: ReturnType<typeof createKubeClient>): Promise<void> {
    const { signal } = this.#ending
    while (!signal.aborted) {
      try {
        const data = { count: String(++this.reads) }
        const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data }
        await client.update(configMap, object, {}, signal)
        // With a handshake each: what the server shows now is verified by what is trusted now.
        await client.request({ method: 'GET', path: counterPath, headers: oneRequest }, signal)
      } catch (error) {
        if (!signal.aborted) this.failures.push(error)
      }
    }
  }

  async #watch(client: ReturnType<typeof createKubeClient>): Promise<void> {
    const { signal } = this.#ending
    try {
      const { resourceVersion } = await client.list(configMap, { namespace: 'default' }, signal)
      const query = { namespace: 'default', from: resourceVersion }
      for await (const _ of client.watch(configMap, query, signal)) this.events++
    } catch (error) {
      if (!signal.aborted) this.failures.push(error)
    }
  }
}

const rootsIn = async (path: string): Promise<number> => {
  const config = await parseKubeconfig(await readFile(path, 'utf8'), path)
  const { cluster } = resolveContext(config)
  return parseCertificates(cluster.certificateAuthorityData ?? '').length
}

/** Pins that joiners are told, and whether they belong to the roots in kube-root-ca.crt too. */
const announced = async (): Promise<string[]> => {
  const { stdout } = await runInProcess(
    'cluster-info show --output json --data-dir'.split(' ').concat(server.dataDirectory),
  )
  const { roots } = JSON.parse(stdout) as { roots: { pin: string }[] }
  return roots.map(({ pin }) => pin)
}

/** Finds the cluster by the line that its own command prints; returns how many roots were found. */
async function rootsByJoinLine(): Promise<number> {
  const create = 'token create --output json --data-dir'.split(' ').concat(server.dataDirectory)
  const { join: line } = JSON.parse((await runInProcess(create)).stdout) as { join: string }
  const out = join(directory, 'joined.kubeconfig')
  const words = line.split(' ').slice(1).concat('--discovery-only', '--force', '--out', out)
  const { code, stderr } = await runInProcess(words)
  if (code !== 0) throw new Error(stderr)
  return rootsIn(out)
}

describe('the CA is replaced while clients are busy [DISC-S14, DISC-R4, DISC-R44, DISC-R46, DISC-R48]', {
  timeout: 60_000,
}, () => {
  let followed: FollowedCluster
  let busy: BusyClient
  let path: string
  let away: string
  let stale: string
  const first = () => spkiPin(server.serving.pki.clusterCa.certificate)
  let firstPin: string

  beforeAll(async () => {
    firstPin = first()
    path = await writeKubeconfig('ada', { token: new Secret(adaToken) })
    away = await kubeconfigFor('rip')
    stale = await kubeconfigFor('old-ada')
    const view = server.serving.view
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: key }
    await view.write('create', object, {}, new AbortController().signal)
    const context = await loadContext({ explicitPath: path, home: '' })
    followed = await FollowedCluster.open(context, { everyMs: 250 })
    busy = new BusyClient(followed.transport)
  }, 60_000)
  afterAll(async () => {
    await busy.stop()
    followed.close()
  })

  test('begin: both are trusted and announced, the first one signs', async () => {
    const { code, report } = await rotate('begin')
    expect([code, report['stage'], report['followed']]).toEqual([0, 'begun', true])
    expect(first()).toBe(firstPin)
    expect(await announced()).toHaveLength(2)
    await eventually('the kubeconfig is refreshed', async () => (await rootsIn(path)) === 2)
    const roots = await server.serving.view.get(
      configMap,
      { namespace: 'default', name: 'kube-root-ca.crt' },
      new AbortController().signal,
    )
    const data = roots?.['data'] as { 'ca.crt': string }
    expect(parseCertificates(data['ca.crt'])).toHaveLength(2)
    expect(await rootsIn(server.serving.adminKubeconfig)).toBe(2)
    expect(await rootsByJoinLine()).toBe(2)
    // Whoever has joined knows the cluster again.
    const joined = await loadContext({
      explicitPath: join(directory, 'joined.kubeconfig'),
      home: '',
    })
    const system = await server.serving.view.get(
      wellKnownKinds.namespace,
      { name: 'kube-system' },
      new AbortController().signal,
    )
    expect(clusterLocation(joined.cluster).clusterId).toBe(system?.metadata.uid)
  })

  test('switch: the new one signs, certificates of the old one still count', async () => {
    const { code, report } = await rotate('switch')
    expect([code, report['stage'], report['followed']]).toEqual([0, 'switched', true])
    expect(first()).not.toBe(firstPin)
    expect(await announced()).toHaveLength(2)
    // Who trusts only the first CA is not cut off yet: the old one vouches for the new one.
    const context = resolveContext(await parseKubeconfig(await readFile(stale, 'utf8'), stale))
    const transport = await transportFromKubeconfig(context)
    const client = createKubeClient({ transport })
    const signal = AbortSignal.timeout(60_000)
    expect(await client.get(configMap, key, signal)).toBeDefined()
    transport.destroy()
    expect(await rootsByJoinLine()).toBe(2)
  })

  test('finish says first whose certificates stop working', async () => {
    await eventually('those in use are noted', async () => {
      const { report } = await rotate('status')
      return JSON.stringify(report['certificatesOfOldCa']).includes('old-ada')
    })
    const { code, stderr } = await rotate('finish')
    expect(code).toBe(1)
    expect(stderr).toMatch(/these client certificates stop working:[^]*old-ada +[0-9A-F]+ +\d{4}-/)
    expect((await rotate('status')).report['stage']).toBe('switched')
  })

  test('finish: the old one is dropped, and nobody who followed has noticed anything', async () => {
    const config = await parseKubeconfig(await readFile(stale, 'utf8'), stale)
    const old = await server
      .as(credentialOf(resolveContext(config).user))
      .watch(`${counterPath.replace('/counter', '')}?watch=true`)
    const { code, report } = await rotate('finish', '--yes')
    expect([code, report['stage']]).toEqual([0, 'none'])
    // A stream of a certificate that no longer counts ends at once.
    await old.ended
    expect(await announced()).toEqual([first()])
    expect(await rootsByJoinLine()).toBe(1)
    await eventually('the kubeconfig is refreshed', async () => (await rootsIn(path)) === 1)
    const { reads, events } = busy
    await eventually('it goes on', () => busy.reads > reads + 3 && busy.events > events)
    expect(busy.failures).toEqual([])
  })

  test('old client certificates are refused from then on', async () => {
    const config = await parseKubeconfig(await readFile(stale, 'utf8'), stale)
    const caller = server.as(credentialOf(resolveContext(config).user))
    expect((await caller.get('/api/v1/namespaces/default/configmaps')).status).toBe(401)
  })

  test('a client that was away is told what happened and what to do', async () => {
    const { code, stderr, stdout } = await runInProcess(
      'cluster-info refresh --output json --kubeconfig'.split(' ').concat(away),
    )
    expect(code).toBe(1)
    const { error } = JSON.parse(stdout) as { error: { code: string } }
    expect(error.code).toBe('ALL_ROOTS_ROTATED')
    expect(stderr).toContain('sallyport join ADDRESS')
    const context = await loadContext({ explicitPath: away, home: '' })
    const lost = await FollowedCluster.open(context)
    const get = createKubeClient({ transport: lost.transport }).get(
      configMap,
      key,
      AbortSignal.timeout(60_000),
    )
    await expect(get).rejects.toMatchObject({ reason: 'all-roots-rotated' })
    lost.close()
  })
})
