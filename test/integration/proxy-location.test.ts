import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../src/core/index.ts'
import { nodePluginHost } from '../../src/credentials/exec/index.ts'
import {
  type Cluster,
  loadContext,
  renderKubeconfig,
  withLocation,
} from '../../src/kubeconfig/index.ts'
import { LocalProxy, transportFromKubeconfig } from '../../src/local-proxy/index.ts'
import { LabProxy } from '../../src/local-proxy/proxy-lab.suite.ts'
import { privateKeyPem } from '../../src/pki/index.ts'
import { eventually } from '../support/eventually.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'

/** Nothing listens there: the port is for nobody but root. */
const dead = 'https://127.0.0.1:1'

let server: InProcessServer
let directory: string
let path: string
let clusterId: string
const proxies: LocalProxy[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-proxy-location-'))
  path = join(directory, 'config')
  server = await startInProcess()
  const { object } = await (await server.admin()).get('/api/v1/namespaces/kube-system')
  clusterId = object.metadata.uid ?? ''
}, 60_000)
afterEach(async () => {
  for (const proxy of proxies.splice(0)) await proxy.stop(AbortSignal.abort())
})
afterAll(async () => {
  await server.close()
  await rm(directory, { recursive: true, force: true })
})

const url = (): string => server.serving.url

/** Writes the kubeconfig of somebody for a cluster at these addresses. */
async function write(...addresses: [string, ...string[]]): Promise<void> {
  const { certPem, key } = await server.serving.pki.issueClient({ commonName: 'jane' })
  const rootsPem = server.serving.pki.clusterCa.bundlePem
  const cluster = withLocation({ server: '' }, { addresses, rootsPem, clusterId })
  const user = { clientCertificateData: certPem, clientKeyData: privateKeyPem(key) }
  const text = await renderKubeconfig({
    currentContext: 'here',
    clusters: new Map([['here', cluster]]),
    users: new Map([['jane', user]]),
    contexts: new Map([['here', { cluster: 'here', user: 'jane' }]]),
  })
  await writeFile(path, text)
}

const entry = async (): Promise<Cluster> =>
  (await loadContext({ explicitPath: path, home: '' })).cluster

async function startProxy(everyMs?: number): Promise<LabProxy> {
  const transport = await transportFromKubeconfig({
    context: await loadContext({ explicitPath: path, home: '' }),
    appendServerPath: false,
    plugins: nodePluginHost(),
    env: {},
    log: silentLogger,
    ...(everyMs !== undefined && { everyMs }),
  })
  const proxy = new LocalProxy({
    listen: { address: '127.0.0.1', port: 0 },
    transport,
    namespace: 'default',
    apiPrefix: '/',
    keepAliveMs: 0,
    clock: systemClock,
    log: silentLogger,
  })
  proxies.push(proxy)
  await proxy.start()
  return new LabProxy(proxy, [])
}

const websocket = '/api/v1/namespaces/default/pods/none/exec'

test('the proxy goes to the next address when one is gone [DISC-R45]', async () => {
  await write(dead, url())
  expect((await (await startProxy()).ask('/version')).status).toBe(200)
})

test('the proxy leaves out the path of every address, as without following', async () => {
  await write(`${dead}/below`, `${url()}/below`)
  expect((await (await startProxy()).ask('/version')).status).toBe(200)
})

test('the proxy goes where the cluster says it is, and writes that down [DISC-R48]', async () => {
  const second = url().replace('127.0.0.1', 'localhost')
  await write(url())
  const proxy = await startProxy(100)
  const call = ['cluster-info', 'set-server', second, '--data-dir', server.dataDirectory]
  expect((await runInProcess(call)).code).toBe(0)
  await eventually('the kubeconfig is current', async () => (await entry()).server === second)
  expect((await proxy.ask('/version')).status).toBe(200)
})

test.each([
  ['a request', async (proxy: LabProxy) => (await proxy.ask('/version')).status, 200],
  ['an upgrade', async (proxy: LabProxy) => (await proxy.handshake(websocket)).head.status, 403],
])(
  '%s finds the cluster that another process has found, and until then is told that it is lost [DISC-R48]',
  async (_name, ask, expected) => {
    await write(dead)
    const proxy = await startProxy()
    const lost = await proxy.ask('/version')
    expect([lost.status, lost.body]).toEqual([
      502,
      expect.stringContaining('the cluster answers at no address that is known of it'),
    ])
    await write(url())
    expect(await ask(proxy)).toBe(expected)
  },
)
