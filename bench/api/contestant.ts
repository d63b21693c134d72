import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startChild } from '../child.ts'
import { freePort } from '../free-port.ts'
import { findPeer } from '../peers.ts'
import { inRoot } from '../root.ts'
import { startSallyport, tokenKubeconfig } from '../sallyport.ts'

/** Whose figures they are: ours, those of kube-apiserver with etcd, or those of a server that does nothing. */
export type Name = 'ours' | 'peer' | 'floor'

/** A server under measurement. */
export interface Contestant {
  readonly name: Name
  readonly kubeconfig: string
  /** The processes whose CPU time and memory are the server's. */
  readonly pids: readonly number[]
  /** From the start of its processes to the first answer that it is ready, where that is known. */
  readonly readyMs?: number
  stop(): Promise<void>
}

/** Starts Sallyport in a directory of its own; a second start there finds its state again. */
export async function startOurs(directory: string, port = 0): Promise<Contestant> {
  await mkdir(directory, { recursive: true })
  const server = await startSallyport(directory, port)
  return {
    name: 'ours',
    kubeconfig: server.kubeconfig,
    pids: [server.pid],
    stop: () => server.stop(),
  }
}

/** Why there is no kube-apiserver to measure against; `undefined` when there is one. */
export function peerMissing(): string | undefined {
  const needed = [findPeer('kube-apiserver-1.36'), eitherEtcd()]
  for (const peer of needed) if ('missing' in peer) return peer.missing
  return undefined
}

const eitherEtcd = () => {
  const built = findPeer('etcd-3.6')
  return 'path' in built ? built : findPeer('etcd')
}

/** Starts kube-apiserver on etcd, with further flags of its own; a second start in the same directory finds its data again. */
export async function startPeer(
  directory: string,
  further: readonly string[] = [],
): Promise<Contestant> {
  const port = await freePort(3) // etcd takes two
  const etcdPort = port + 1
  const runner = inRoot('interop/peers/run-kube-apiserver')
  const flags = ['--dir', directory, '--port', String(port), '--etcd-port', String(etcdPort)]
  const child = await startChild(runner, [...flags, '--', ...further])
  const numberIn = async (file: string) => Number(await readFile(join(directory, file), 'utf8'))
  return {
    name: 'peer',
    kubeconfig: child.firstLine,
    pids: [await numberIn('kube-apiserver.pid'), await numberIn('etcd.pid')],
    readyMs: await numberIn('ready-ms'),
    stop: () => child.stop(),
  }
}

/** Starts the bare server with the certificate of one of ours, and leaves that alone. */
export async function startFloor(directory: string, ours: string): Promise<Contestant> {
  await mkdir(directory, { recursive: true })
  const program = fileURLToPath(new URL('floor-server.js', import.meta.url))
  const pki = join(ours, 'data', 'pki')
  const files = [join(pki, 'apiserver.key'), join(pki, 'apiserver.crt')]
  const child = await startChild(process.execPath, [program, ...files])
  const kubeconfig = join(directory, 'kubeconfig')
  const caPem = await readFile(join(pki, 'ca.crt'), 'utf8')
  await writeFile(kubeconfig, tokenKubeconfig(`https://127.0.0.1:${child.firstLine}`, caPem))
  return { name: 'floor', kubeconfig, pids: [child.pid], stop: () => child.stop() }
}
