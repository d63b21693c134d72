import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../bench/free-port.ts'
import { parseKubeconfig } from '../../../src/kubeconfig/index.ts'
import { startSallyport } from '../../support/sallyport-process.ts'
import { compactEtcd, outgrowHistory } from './expire-versions.ts'
import { LiveServer } from './live-server.ts'
import type { ServerPair } from './run-topic.ts'

const program = fileURLToPath(new URL('../../../interop/peers/run-kube-apiserver', import.meta.url))

const jwksUri = 'https://issuer.example/openid/v1/jwks'

/** Both servers, running, and what can be done to them. */
export interface RunningPair extends ServerPair {
  /** Makes every version so far too old for both. */
  expireVersions(): Promise<void>
  stop(): Promise<void>
}

/** A kube-apiserver with its etcd that can be started again where it was. */
class Peer {
  readonly #directory: string
  readonly #port: string
  readonly #etcdPort: string
  #child: ChildProcess | undefined

  constructor(directory: string, port: string, etcdPort: string) {
    this.#directory = directory
    this.#port = port
    this.#etcdPort = etcdPort
  }

  async start(): Promise<void> {
    const ports = ['--port', this.#port, '--etcd-port', this.#etcdPort]
    const flags = ['--', `--service-account-jwks-uri=${jwksUri}`]
    const child = spawn(program, ['--dir', this.#directory, ...ports, ...flags], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child = child
    await Promise.race([
      once(createInterface({ input: child.stdout }), 'line'),
      once(child, 'exit').then(([code]) => {
        throw new Error(`run-kube-apiserver ended with ${code}`)
      }),
    ])
  }

  /** Its watch cache keeps all since the start, and a new one knows nothing from before. */
  async expireVersions(): Promise<void> {
    await compactEtcd(`http://127.0.0.1:${this.#etcdPort}`)
    await this.stop()
    await this.start()
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
  }
}

async function readTokens(path: string): Promise<Record<'admin' | 'visitor', string>> {
  const lines = (await readFile(path, 'utf8')).split('\n').map((line) => line.split(','))
  const tokenOf = (user: string) => lines.find(([, name]) => name === user)?.[0] ?? ''
  return { admin: tokenOf('admin'), visitor: tokenOf('visitor') }
}

async function connectTo(
  path: string,
  tokens: Record<'admin' | 'visitor', string>,
): Promise<LiveServer> {
  const { clusters } = await parseKubeconfig(await readFile(path, 'utf8'), path)
  const [cluster] = clusters.values()
  return new LiveServer({
    address: cluster?.server ?? '',
    ca: cluster?.certificateAuthorityData ?? '',
    tokens: { ...tokens, 'wrong-token': 'wrong' },
  })
}

/** Lets both issue the same tokens: as `run-kube-apiserver` has it, with its keys. */
const sharedIssuer = (directory: string): string[] => [
  '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
  `--service-account-jwks-uri=${jwksUri}`,
  `--service-account-signing-key-file=${join(directory, 'pki', 'sa.key')}`,
]

/** Starts a kube-apiserver on etcd and our server, with the same people, keys and issuer. */
export async function startServers(): Promise<RunningPair> {
  const directory = await mkdtemp(join(tmpdir(), 'same-answers-'))
  const endings: (() => Promise<unknown>)[] = []
  const stop = async (): Promise<void> => {
    await Promise.all(endings.map((end) => end()))
    await rm(directory, { recursive: true, force: true })
  }
  try {
    const port = await freePort(3) // etcd takes two
    const peer = new Peer(directory, String(port), String(port + 1))
    endings.push(() => peer.stop())
    await peer.start()
    const tokenFile = join(directory, 'tokens.csv')
    const own = await startSallyport({
      args: [
        '--token-auth-file',
        tokenFile,
        '--advertise-address',
        '127.0.0.1',
        ...sharedIssuer(directory),
      ],
    })
    endings.push(() => own.stop())
    const tokens = await readTokens(tokenFile)
    const ours = await connectTo(own.kubeconfig, tokens)
    const theirs = await connectTo(join(directory, 'admin.kubeconfig'), tokens)
    const expireVersions = async (): Promise<void> => {
      await Promise.all([outgrowHistory(ours), peer.expireVersions()])
      theirs.close()
    }
    return { ours, theirs, expireVersions, stop }
  } catch (cause) {
    await stop()
    throw cause
  }
}
