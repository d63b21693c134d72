import { findPeer, pathOrReason } from './peers.ts'
import { type Maker, tunnelPeers } from './tunnel-lab.ts'

/** Who is at each end of a tunnel. */
export interface Pair {
  readonly name: string
  readonly server: Maker
  readonly agent: Maker
}

const makers: readonly Maker[] = ['go', 'ours']
const isMaker = (text: string | undefined): text is Maker => makers.some((maker) => maker === text)

/**
 * The pairs to test, as server/agent. `go/go` is not among them: it shows that a test asks for what
 * upstream does; say SALLYPORT_TUNNEL_PAIRS=go/go for that.
 */
export const pairs: readonly Pair[] = (
  process.env['SALLYPORT_TUNNEL_PAIRS'] ?? 'ours/ours,ours/go,go/ours'
)
  .split(',')
  .map((text) => {
    const [server, agent] = text.split('/')
    if (!isMaker(server) || !isMaker(agent)) throw new Error(`not a pair of makers: ${text}`)
    return { name: `server by ${server}, agent by ${agent}`, server, agent }
  })

/** Whether every program that the tests of the tunnel need is here; says which one is not. */
export const tunnelPeersAreHere: boolean = tunnelPeers.every(
  (name) => pathOrReason(findPeer(name)) !== undefined,
)
