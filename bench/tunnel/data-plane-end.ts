// One process of the data path: `server`, `agent` or, for comparison, a bare TCP `relay`.
import { readFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { silentLogger } from '../../src/core/index.ts'
import {
  allCapabilities,
  connectLink,
  join,
  type Link,
  LinkServer,
  socketStream,
} from '../../src/tunnel/link/index.ts'

const [role = '', certificates = '', target = '', agentPort = ''] = process.argv.slice(2)
const file = (name: string): string => readFileSync(`${certificates}/${name}`, 'utf8')
const portOf = (server: net.Server): number => (server.address() as AddressInfo).port
const hostAndPort = (address: string) => {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
}

function listen(server: net.Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(portOf(server)))
  })
}

async function serve(): Promise<void> {
  let link: Link | undefined
  const service = new LinkServer({
    path: '/AgentService/Connect',
    capabilities: process.env['CAPABILITIES'] === 'none' ? [] : allCapabilities,
    log: silentLogger,
    authenticate: () => Promise.resolve({ metadata: { serverid: 's', servercount: '1' } }),
    onLink: (opened) => {
      link = opened
      opened.start({ dial: (dial) => dial.refuse('no'), drain: () => {} })
    },
  })
  const front = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const signal = AbortSignal.timeout(10_000)
    link?.dial(target, { signal, deadlineMs: 10_000 }).then(
      (channel) => join(socketStream(socket), channel),
      () => socket.destroy(),
    )
  })
  const ca = file('ca.pem')
  const agents = service.secureServer({
    ca,
    cert: file('server.pem'),
    key: file('server.key'),
    requestCert: true,
    rejectUnauthorized: true,
  })
  process.stdout.write(`${await listen(front)} ${await listen(agents)}\n`)
}

async function connect(): Promise<void> {
  const link = await connectLink({
    host: '127.0.0.1',
    port: Number(agentPort),
    tls: { ca: file('ca.pem'), cert: file('agent.pem'), key: file('agent.key') },
    metadata: { agentid: 'a' },
    capabilities: allCapabilities,
    signal: new AbortController().signal,
    log: silentLogger,
  })
  link.start({
    drain: () => {},
    dial: (dial) => {
      const socket = net.connect({
        ...hostAndPort(dial.address),
        allowHalfOpen: true,
        noDelay: true,
      })
      const failed = (error: Error): void => dial.refuse(error.message)
      socket.once('error', failed)
      socket.once('connect', () => {
        socket.removeListener('error', failed)
        const channel = dial.accept()
        if (channel) void join(socketStream(socket), channel)
        else socket.destroy()
      })
    },
  })
  process.stdout.write('connected\n')
  await link.ended
}

async function relay(): Promise<void> {
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = net.connect({ ...hostAndPort(target), allowHalfOpen: true, noDelay: true })
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
    near.pipe(far).pipe(near)
  })
  process.stdout.write(`${await listen(server)}\n`)
}

// An orderly exit lets `node --cpu-prof` write its profile.
process.once('SIGTERM', () => process.exit(0))
const roles: Record<string, () => Promise<void>> = { server: serve, agent: connect, relay }
await roles[role]?.()
