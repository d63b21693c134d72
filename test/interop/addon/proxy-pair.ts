import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../bench/free-port.ts'
import { addonFeature } from '../../../src/apiserver/features/addon.ts'
import { parseKubeconfig } from '../../../src/kubeconfig/index.ts'
import { type InProcessServer, startInProcess } from '../../support/in-process-server.ts'
import type { Answer, Ask } from '../same-answers/ask.ts'
import { LiveServer } from '../same-answers/live-server.ts'
import { startBackend } from './proxied-backend.ts'

const program = fileURLToPath(new URL('../../../interop/peers/run-kube-apiserver', import.meta.url))

/** A kube-apiserver and ours with the same Services, Pods and people, before one and the same application. */
export class ProxyPair {
  readonly ours: LiveServer
  readonly theirs: LiveServer
  readonly #stops: (() => Promise<unknown>)[]

  private constructor(ours: LiveServer, theirs: LiveServer, stops: (() => Promise<unknown>)[]) {
    this.ours = ours
    this.theirs = theirs
    this.#stops = stops
  }

  static async start(address: string): Promise<ProxyPair> {
    const directory = await mkdtemp(join(tmpdir(), 'proxy-pair-'))
    const stops: (() => Promise<unknown>)[] = [
      () => rm(directory, { recursive: true, force: true }),
    ]
    const peer = await startPeer(directory)
    stops.push(() => stopPeer(peer))
    const backend = await startBackend(address)
    stops.push(() => stopBackend(backend.server))
    const tokenFile = join(directory, 'tokens.csv')
    const own = await startInProcess({
      flags: ['--token-auth-file', tokenFile],
      features: [addonFeature],
    })
    stops.push(() => own.close())
    const tokens = tokensIn(await readFile(tokenFile, 'utf8'))
    const ours = new LiveServer({ ...placeOf(own), tokens })
    const config = join(directory, 'admin.kubeconfig')
    const { clusters } = await parseKubeconfig(await readFile(config, 'utf8'), config)
    const [cluster] = clusters.values()
    const theirs = new LiveServer({
      address: cluster?.server ?? '',
      ca: cluster?.certificateAuthorityData ?? '',
      tokens,
    })
    const pair = new ProxyPair(ours, theirs, stops)
    for (const server of [ours, theirs]) await fill(server, address, backend.port)
    return pair
  }

  async stop(): Promise<void> {
    this.ours.close()
    this.theirs.close()
    for (const stop of this.#stops.reverse()) await stop()
  }
}

async function startPeer(directory: string): Promise<ChildProcess> {
  const port = await freePort(3) // etcd takes two
  const ports = ['--port', `${port}`, '--etcd-port', `${port + 1}`]
  const child = spawn(program, ['--dir', directory, ...ports], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`run-kube-apiserver ended with ${code}`)
    }),
  ])
  return child
}

async function stopPeer(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

async function stopBackend(server: Server): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

const placeOf = ({ serving }: InProcessServer) => ({
  address: serving.url,
  ca: serving.pki.clusterCa.bundlePem,
})

function tokensIn(csv: string): Record<'admin' | 'visitor', string> {
  const lines = csv.split('\n').map((line) => line.split(','))
  const tokenOf = (user: string) => lines.find(([, name]) => name === user)?.[0] ?? ''
  return { admin: tokenOf('admin'), visitor: tokenOf('visitor') }
}

/** The same objects for both; endpoints are written by hand, since the peer runs no controllers. */
async function fill(server: LiveServer, ip: string, port: number): Promise<void> {
  const made = async (path: string, object: object, method = 'POST'): Promise<Answer> => {
    const ask: Ask = { method, path, body: object }
    const answer = await server.answer(ask, '')
    if (answer.code >= 300) throw new Error(`${path}: ${answer.code} ${answer.text}`)
    return answer
  }
  const root = '/api/v1/namespaces/default'
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
  const pod = async (name: string, podIP: string): Promise<void> => {
    const { json } = await made(`${root}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: port }] }] },
    })
    const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }] }
    await made(`${root}/pods/${name}/status`, { ...(json as object), status }, 'PUT')
  }
  const service = (name: string, spec: object) =>
    made(`${root}/services`, { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec })
  /** In both forms, as the controllers of a cluster would: the peer still reads the older one. */
  const endpoints = async (
    name: string,
    portName: string,
    endpoint: { readonly targetRef?: object; readonly ready?: boolean },
    to = port,
  ): Promise<void> => {
    const { targetRef, ready = true } = endpoint
    await made(slices, {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ name: portName, port: to, protocol: 'TCP' }],
      endpoints: [{ addresses: [ip], conditions: { ready }, targetRef }],
    })
    await made(`${root}/endpoints`, {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name },
      subsets: [
        {
          [ready ? 'addresses' : 'notReadyAddresses']: [{ ip, targetRef }],
          ports: [{ name: portName, port: to }],
        },
      ],
    })
  }
  const at = (name: string) => ({ kind: 'Pod', namespace: 'default', name })
  await pod('web', ip)
  await pod('far', '10.255.255.1')
  await made(`${root}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'unplaced' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  })
  await service('web', { ports: [{ port: 80 }] })
  await endpoints('web', '', { targetRef: at('web') })
  await service('named', { ports: [{ name: 'http', port: 8080 }] })
  await endpoints('named', 'http', { targetRef: at('web') })
  await service('empty', { ports: [{ port: 80 }] })
  await made(`${root}/endpoints`, {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'empty' },
  })
  await service('unready', { ports: [{ port: 80 }] })
  await endpoints('unready', '', { targetRef: at('web'), ready: false })
  await service('no-pod', { ports: [{ port: 80 }] })
  await endpoints('no-pod', '', {})
  await service('wrong-pod', { ports: [{ port: 80 }] })
  await endpoints('wrong-pod', '', { targetRef: at('far') })
  await service('closed', { ports: [{ port: 80 }] })
  await endpoints('closed', '', { targetRef: at('web') }, 1)
  await service('outside', { type: 'ExternalName', externalName: 'else.example' })
}
