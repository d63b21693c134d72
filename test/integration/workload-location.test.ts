import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../src/core/index.ts'
import { changeCluster, loadContext, withLocation } from '../../src/kubeconfig/index.ts'
import { buildOnce } from '../build-once.ts'
import { eventually } from '../support/eventually.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { createMachine, WorkloadRunner } from '../support/running-workload.ts'
import { TcpBalancer } from '../support/tcp-balancer.ts'

/** Tells which server its kubeconfig names, whenever that is another one. */
const tellServer = `
const fs = require('node:fs')
let told
setInterval(() => {
  const [, server] = /server: (\\S+)/.exec(fs.readFileSync(process.env.KUBECONFIG, 'utf8')) ?? []
  if (server !== told) console.log('server ' + (told = server))
}, 50)
`

let server: InProcessServer
let scratch: string
let machine: string
let runner: WorkloadRunner

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sallyport-workload-location-'))
  server = await startInProcess()
  await buildOnce() // is not part of the time of a test
  machine = await createMachine({ server, directory: scratch }, 'laptop')
  runner = new WorkloadRunner(machine)
}, 300_000)
afterAll(async () => {
  await runner?.close()
  await server?.close()
  await rm(scratch, { recursive: true, force: true })
})

/** Has the machine's kubeconfig say that the cluster is there. */
async function writeAddress(address: string): Promise<void> {
  const { object } = await (await server.admin()).get('/api/v1/namespaces/kube-system')
  const { clusterName } = await loadContext({ explicitPath: machine, home: '' })
  const location = {
    addresses: [address] as const,
    rootsPem: server.serving.pki.clusterCa.bundlePem,
    clusterId: object.metadata.uid ?? '',
  }
  await changeCluster(
    { path: machine, name: clusterName },
    (cluster) => withLocation(cluster, location),
    { clock: systemClock, signal: new AbortController().signal },
  )
}

async function renewedAt(): Promise<string> {
  const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
  const { object } = await (await server.admin()).get(path)
  const [lease] = object['items'] as { spec: { renewTime: string } }[]
  return lease?.spec.renewTime ?? ''
}

test('a workload finds the cluster where another process has found it, and its process is told [DISC-R48]', async () => {
  const { url, port } = server.serving
  const old = await TcpBalancer.start(port)
  await writeAddress(`https://127.0.0.1:${old.port}`)
  const place = ['--no-in-cluster', '--lease-duration', '20s']
  const running = await runner.start([...place, '--', process.execPath, '-e', tellServer])
  await running.printed(new RegExp(`server https://127.0.0.1:${old.port}/?\n`))
  await old.close()
  await writeAddress(url)
  const moved = await renewedAt()
  await running.printed(new RegExp(`server ${url}/?\n`))
  await eventually('its Lease is renewed', async () => (await renewedAt()) > moved)
  expect(running.process.exitCode).toBeNull()
}, 60_000)
