import { once } from 'node:events'
import { silentLogger } from '../../core/index.ts'
import {
  allCapabilities,
  type Capability,
  connectLink,
  type Link,
  type LinkLimits,
  LinkServer,
  type PacketTally,
} from './index.ts'

/** What a pair of links for tests may be told. */
export interface LinkPairOptions {
  /** What both ends offer; everything without it. */
  readonly capabilities?: readonly Capability[]
  readonly limits?: Partial<LinkLimits>
  /** `/ProxyService/Proxy` makes the acceptor a gateway and the dialer a front end. */
  readonly path?: '/AgentService/Connect' | '/ProxyService/Proxy'
  readonly packets?: { readonly dialer?: PacketTally; readonly acceptor?: PacketTally }
}

/** A server's and an agent's end of one link over a real HTTP/2 connection; neither is started. */
export interface LinkPair {
  /** The end that dials: the server's, or a front end's. */
  readonly dialer: Link
  /** The end that is dialled (an agent's end dials as well if `rdial` is agreed on). */
  readonly acceptor: Link
  close(): Promise<void>
}

/** Two ends of a link in this process, for tests. */
export async function linkPair(options: LinkPairOptions = {}): Promise<LinkPair> {
  const { capabilities = allCapabilities, limits = {}, path = '/AgentService/Connect' } = options
  const isAgent = path === '/AgentService/Connect'
  const tally = (of: 'dialer' | 'acceptor') => {
    const packets = options.packets?.[of]
    return packets && { packets }
  }
  const settings = { capabilities, limits, log: silentLogger }
  let opened: (link: Link) => void = () => {}
  const serverLink = new Promise<Link>((resolve) => {
    opened = resolve
  })
  const service = new LinkServer({
    ...settings,
    ...tally(isAgent ? 'dialer' : 'acceptor'),
    path,
    authenticate: () => Promise.resolve({ metadata: {} }),
    onLink: opened,
  })
  const server = service.cleartextServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const client = await connectLink({
    ...settings,
    ...tally(isAgent ? 'acceptor' : 'dialer'),
    host: '127.0.0.1',
    port: address.port,
    tls: 'cleartext',
    path,
    metadata: {},
    signal: new AbortController().signal,
  })
  const served = await serverLink
  return {
    dialer: isAgent ? served : client,
    acceptor: isAgent ? client : served,
    close: async () => {
      client.close()
      service.close()
      server.close()
      await once(server, 'close')
    },
  }
}
