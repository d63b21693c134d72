import { mkdir } from 'node:fs/promises'
import { startPeer } from '../api/contestant.ts'
import { startSallyport } from '../sallyport.ts'

/** An API server whose service proxy is measured. */
export interface ProxyServer {
  readonly name: string
  readonly kubeconfig: string
  readonly pid: number
  /** The process that keeps its data, if that is another one. */
  readonly storePid?: number
  stop(): Promise<void>
}

export const ours = 'sallyport'
export const theirs = 'kube-apiserver'

/** What one user may use is bounded by default, and here one user sends all of the load. */
const withoutBounds = [
  ['--addon-requests-per-second', '1000000'],
  ['--addon-request-burst', '1000000'],
  ['--addon-max-requests', '100000'],
  ['--addon-max-tunnels', '100000'],
  ['--addon-bytes-per-second', '1024Gi'],
].flat()

/** Starts ours, with flags for Node if it is to be profiled. */
export async function startOurs(
  directory: string,
  nodeFlags: readonly string[] = [],
): Promise<ProxyServer> {
  await mkdir(directory, { recursive: true })
  const server = await startSallyport(directory, 0, { flags: withoutBounds, nodeFlags })
  const { kubeconfig, pid } = server
  return { name: ours, kubeconfig, pid, stop: () => server.stop() }
}

/** Starts kube-apiserver on etcd. */
export async function startTheirs(directory: string): Promise<ProxyServer> {
  const peer = await startPeer(directory)
  const [pid = 0, storePid = 0] = peer.pids
  return { name: theirs, kubeconfig: peer.kubeconfig, pid, storePid, stop: () => peer.stop() }
}
