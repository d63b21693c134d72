import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { peerMissing, startPeer } from '../api/contestant.ts'
import { readOrder, report } from '../credentials/report.ts'
import { startSallyport } from '../sallyport.ts'
import { measureClusterInfo } from './cluster-info.ts'
import { invite } from './invitation.ts'
import { measureJoining } from './joining.ts'

/** Joining beside kubeadm's discovery, and cluster-info signed beside the plain read. */

const order = readOrder('discovery')
const directory = await mkdtemp(join(tmpdir(), 'bench-discovery-'))
const home = join(directory, 'ours')
await mkdir(home)
const sallyport = await startSallyport(home)
const stops: (() => Promise<void>)[] = [() => sallyport.stop()]
try {
  const joined = await measureJoining({ server: sallyport.server, directory: home }, order)
  const missing = peerMissing()
  if (missing !== undefined) console.error(missing)
  const peer = missing === undefined ? await startPeer(join(directory, 'peer')) : undefined
  if (peer) stops.push(() => peer.stop())
  const { token } = await invite(join(home, 'data'))
  const ours = { kubeconfig: sallyport.kubeconfig, pids: [sallyport.pid] }
  const read = await measureClusterInfo({ ours, peer }, { token, directory, order })
  await report([...joined, ...read], order)
} finally {
  for (const stop of stops.reverse()) await stop()
  await rm(directory, { recursive: true, force: true })
}
