import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { describe } from 'vitest'
import { freePort } from '../../bench/free-port.ts'
import {
  createKubeClient,
  RemoteClusterView,
  transportFromKubeconfig,
} from '../../src/client/index.ts'
import { parseKubeconfig, resolveContext } from '../../src/kubeconfig/index.ts'
import {
  type ClusterViewFixture,
  describeClusterView,
} from '../../src/testing/cluster-view.suite.ts'
import { findPeer, findProgram, pathOrReason } from '../support/peers.ts'

const program = fileURLToPath(new URL('../../interop/peers/run-kube-apiserver', import.meta.url))
const here = [findPeer('kube-apiserver-1.36'), findPeer('etcd-3.6'), findProgram('openssl')].every(
  (peer) => pathOrReason(peer) !== undefined,
)

/** A kube-apiserver with its etcd that can be started again where it was. */
class KubeApiserver {
  readonly #args: readonly string[]
  readonly #directory: string
  #child: ChildProcess | undefined
  kubeconfig = ''

  constructor(directory: string, port: number, etcdPort: number) {
    this.#directory = directory
    this.#args = ['--dir', directory, '--port', String(port), '--etcd-port', String(etcdPort)]
  }

  async start(): Promise<void> {
    const child = spawn(program, this.#args, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#child = child
    this.kubeconfig = await Promise.race([
      once(createInterface({ input: child.stdout }), 'line').then(([line]) => String(line)),
      once(child, 'exit').then(([code]) => {
        throw new Error(`run-kube-apiserver ended with ${code}`)
      }),
    ])
  }

  async stop(): Promise<void> {
    if (!this.#child) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await exited
  }

  async remove(): Promise<void> {
    await this.stop()
    await rm(this.#directory, { recursive: true, force: true })
  }
}

let server: KubeApiserver
let visitorToken = ''

async function open(): Promise<ClusterViewFixture> {
  const directory = await mkdtemp(join(tmpdir(), 'kube-apiserver-'))
  const port = await freePort(3) // etcd takes two
  server = new KubeApiserver(directory, port, port + 1)
  await server.start()
  const config = await parseKubeconfig(await readFile(server.kubeconfig, 'utf8'), server.kubeconfig)
  visitorToken = config.users.get('visitor')?.token?.reveal() ?? ''
  const transport = await transportFromKubeconfig(resolveContext(config, 'admin-cert'))
  return {
    view: new RemoteClusterView(createKubeClient({ transport })),
    async close() {
      transport.destroy()
      await server.remove()
    },
  }
}

describe.skipIf(!here)('with kube-apiserver on etcd', () => {
  describeClusterView('a real kube-apiserver', open, {
    // Its watch cache keeps all since the start, and a new one knows nothing from before.
    expiredVersion: async () => {
      await server.stop()
      await server.start()
      return '1'
    },
    token: () => ({ value: visitorToken, username: 'visitor' }),
    issuesTokens: true,
  })
})
