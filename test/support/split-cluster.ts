import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FrontMode } from '../../bench/tunnel/pairs-flags.ts'
import { agentFlags, serverFlags } from '../../bench/tunnel/pairs-flags.ts'
import { eventually } from './eventually.ts'
import { type Outcome, run } from './kubectl.ts'
import type { LoggedProcess } from './logged-process.ts'
import { Network } from './network-namespace.ts'
import { findPeer } from './peers.ts'
import { type Maker, type Transport, TunnelLab } from './tunnel-lab.ts'

const runKubeApiserver = fileURLToPath(
  new URL('../../interop/peers/run-kube-apiserver', import.meta.url),
)

/** Addresses of the two networks. `pod` exists in both: only the node's one is the pod. */
export const addresses = {
  server: '10.77.0.1',
  node: '10.77.0.2',
  pod: '10.200.0.5',
  /** Where the agent listens for the node's clients; the API server advertises it. */
  bind: '10.99.0.1',
  service: '10.96.0.1',
} as const

/** Ports of the API server and the tunnel server, each in a network of its own. */
export const ports = { api: 16443, etcd: 12379, agent: 8132, front: 8131, pod: 8080 } as const

/** How the API server reaches the tunnel server. */
export interface Egress {
  readonly mode: FrontMode
  readonly transport: Transport
}

/** Whose programs the two ends are. */
export interface Ends {
  readonly server: Maker
  readonly agent: Maker
}

const webServer = `
const [name, address, port] = process.argv.slice(1)
require('node:http').createServer((request, response) => {
  response.end(name + ' ' + request.url)
}).listen(Number(port), address, () => console.log('listening'))`

/**
 * A real kube-apiserver and a tunnel server in one network, an agent and a pod in another. The
 * networks share a cable, on which nothing but the tunnel server's agent port listens.
 */
export class SplitCluster {
  readonly lab: TunnelLab
  readonly controlPlane: Network
  readonly node: Network
  readonly egress: Egress
  readonly ends: Ends
  readonly #uds: string
  #apiserver: LoggedProcess | undefined
  server: LoggedProcess | undefined
  agent: LoggedProcess | undefined
  kubeconfig = ''

  constructor(lab: TunnelLab, networks: readonly [Network, Network], egress: Egress, ends: Ends) {
    this.lab = lab
    ;[this.controlPlane, this.node] = networks
    this.egress = egress
    this.ends = ends
    this.#uds = lab.fresh('sock')
  }

  static async open(egress: Egress, ends: Ends): Promise<SplitCluster> {
    const lab = await TunnelLab.open(['127.0.0.1', addresses.server])
    const networks = [await Network.open('control'), await Network.open('node')] as const
    const [controlPlane, node] = networks
    await controlPlane.joinTo(node, addresses.server, addresses.node)
    // The same address twice: whoever dials it directly gets the wrong answer.
    for (const network of networks) await network.addAddress(addresses.pod)
    for (const address of [addresses.bind, addresses.service]) await node.addAddress(address)
    const cluster = new SplitCluster(lab, networks, egress, ends)
    await Promise.all([
      cluster.#web(controlPlane, 'the control plane answers'),
      cluster.#web(node, 'the pod answers'),
    ])
    return cluster
  }

  /** Directory of the API server: its keys and logs. */
  get directory(): string {
    return join(this.lab.directory, 'kube')
  }

  async startApiserver(...flags: readonly string[]): Promise<void> {
    const config = join(this.lab.directory, 'egress.json')
    await writeFile(config, JSON.stringify(this.#egressConfiguration()))
    const place = ['--dir', this.directory, '--port', String(ports.api)]
    this.#apiserver = this.start(this.controlPlane, [
      runKubeApiserver,
      ...place,
      '--san',
      `IP:${addresses.bind}`,
      '--',
      `--egress-selector-config-file=${config}`,
      ...flags,
    ])
    this.kubeconfig = await this.#apiserver.said(/admin\.kubeconfig$/)
  }

  async startServer(...flags: readonly string[]): Promise<LoggedProcess> {
    const { mode, transport } = this.egress
    const front = transport === 'uds' ? { uds: this.#uds } : { port: ports.front }
    const place = { mode, front, agentPort: ports.agent, healthPort: 8134, adminPort: 8133 }
    this.server = await this.lab.startEnd(
      this.ends.server,
      'server',
      [
        ...serverFlags(this.lab.certificates, place),
        `--agent-bind-address=${addresses.server}`,
        '--health-bind-address=127.0.0.1',
        ...flags,
      ],
      this.controlPlane.inside,
    )
    return this.server
  }

  async startAgent(...flags: readonly string[]): Promise<LoggedProcess> {
    const place = { host: addresses.server, port: ports.agent, healthPort: 8093, adminPort: 8094 }
    this.agent = await this.lab.startEnd(
      this.ends.agent,
      'agent',
      [
        ...agentFlags(this.lab.certificates, place),
        '--health-server-host=127.0.0.1',
        '--sync-interval=200ms',
        ...flags,
      ],
      this.node.inside,
    )
    return this.agent
  }

  /** Starts a program in one of the networks; it ends with the cluster. */
  start(network: Network, command: readonly string[]): LoggedProcess {
    const [ip = '', ...rest] = [...network.inside, ...command]
    return this.lab.start(ip, rest)
  }

  /** Runs a program in one of the networks to its end. */
  run(network: Network, command: readonly string[]): Promise<Outcome> {
    const [ip = '', ...rest] = [...network.inside, ...command]
    return run(ip, rest)
  }

  /** kubectl beside the API server, as its administrator; fails with what it said. */
  async kubectl(...args: readonly string[]): Promise<string> {
    return this.kubectlIn(this.controlPlane, this.kubeconfig, ...args)
  }

  /** kubectl in any network with any kubeconfig. */
  async kubectlIn(
    network: Network,
    kubeconfig: string,
    ...args: readonly string[]
  ): Promise<string> {
    const peer = findPeer('kubectl-1.36')
    if ('missing' in peer) throw new Error(peer.missing)
    const cache = ['--cache-dir', join(this.lab.directory, 'cache')]
    const all = ['--kubeconfig', kubeconfig, ...cache, ...args]
    const { code, stdout, stderr } = await this.run(network, [peer.path, ...all])
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${stderr}`)
    return stdout
  }

  /** Makes the pod, and a service in front of it, as a kubelet and its controllers would. */
  async createPod(): Promise<void> {
    const metadata = { name: 'web', namespace: 'default', labels: { app: 'web' } }
    const { pod: ip } = addresses
    const port = ports.pod
    const targetRef = { kind: 'Pod', name: 'web', namespace: 'default' }
    const spec = { containers: [{ name: 'web', image: 'web' }] }
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }] }
    const objects = [
      { apiVersion: 'v1', kind: 'Pod', metadata, spec },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata,
        spec: { ports: [{ name: 'http', port: 80, targetPort: port }] },
      },
      {
        apiVersion: 'v1',
        kind: 'Endpoints',
        metadata,
        subsets: [{ addresses: [{ ip, targetRef }], ports: [{ name: 'http', port }] }],
      },
    ]
    for (const [at, object] of objects.entries()) {
      await this.kubectl('create', '-f', await this.write(`object-${at}.json`, object))
    }
    const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })]
    await this.kubectl('patch', 'pod', 'web', ...patch)
  }

  /** What the pod answers through the API server's pods/proxy, once it does. */
  podAnswers(path: string): Promise<string> {
    const url = `/api/v1/namespaces/default/pods/web:${ports.pod}/proxy/${path}`
    return eventually('an answer by pods/proxy', () => this.kubectl('get', '--raw', url))
  }

  /** Writes a file for a program in any network. */
  async write(name: string, object: object): Promise<string> {
    const path = join(this.lab.directory, name)
    await writeFile(path, JSON.stringify(object))
    return path
  }

  async close(): Promise<void> {
    await this.#apiserver?.stop('SIGTERM', 20_000)
    await this.lab.close()
    await Promise.all([this.controlPlane.close(), this.node.close()])
  }

  async #web(network: Network, name: string): Promise<void> {
    const script = ['-e', webServer, '--', name, addresses.pod, String(ports.pod)]
    await this.start(network, [process.execPath, ...script]).said(/^listening/)
  }

  #egressConfiguration(): object {
    const { mode, transport } = this.egress
    const { frontCa, frontClient } = this.lab.certificates
    const tcp = {
      url: `https://127.0.0.1:${ports.front}`,
      tlsConfig: {
        caBundle: frontCa,
        clientKey: frontClient.key,
        clientCert: frontClient.cert,
      },
    }
    return {
      apiVersion: 'apiserver.k8s.io/v1beta1',
      kind: 'EgressSelectorConfiguration',
      egressSelections: [
        {
          name: 'cluster',
          connection: {
            proxyProtocol: mode === 'grpc' ? 'GRPC' : 'HTTPConnect',
            transport: transport === 'uds' ? { uds: { udsName: this.#uds } } : { tcp },
          },
        },
      ],
    }
  }
}
