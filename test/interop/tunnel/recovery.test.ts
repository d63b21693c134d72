import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { FrontMode } from '../../../bench/tunnel/pairs-flags.ts'
import { eventually } from '../../support/eventually.ts'
import { TcpBalancer } from '../../support/tcp-balancer.ts'
import { echoTarget, type TcpTarget } from '../../support/tcp-target.ts'
import { exchange } from '../../support/tunnel-front.ts'
import { TunnelLab, type TunnelServer } from '../../support/tunnel-lab.ts'
import { pairs, tunnelPeersAreHere } from '../../support/tunnel-pairs.ts'

const modes: readonly FrontMode[] = ['grpc', 'http-connect']
// A front end is the server's alone: beside upstream's programs one of them is enough.
const cases = pairs.flatMap((pair) =>
  (pair.server === pair.agent ? modes : modes.slice(0, 1)).map(
    (mode) => [pair.name, mode, pair] as const,
  ),
)

let echo: TcpTarget
let lab: TunnelLab

beforeAll(async () => {
  echo = await echoTarget()
})
afterAll(() => echo.close())
beforeEach(async () => {
  lab = await TunnelLab.open()
})
afterEach(() => lab.close())

const echoes = async (server: TunnelServer): Promise<boolean> => {
  const socket = await server.dial(echo.address)
  const isEqual = (await exchange(socket, 'hello')) === 'hello'
  socket.destroy()
  return isEqual
}

const statusOf = async (port: number, path: string): Promise<number> =>
  (await fetch(`http://127.0.0.1:${port}${path}`)).status

describe.skipIf(!tunnelPeersAreHere).each(cases)('%s, %s', (_name, mode, pair) => {
  const startServer = (flags: readonly string[] = []): Promise<TunnelServer> =>
    lab.server({ maker: pair.server, mode, flags })
  const startAgent = (port: number, ...flags: readonly string[]) =>
    lab.agent({ maker: pair.agent, port, flags })

  test('readiness follows the agents, on both ends [TUN-U9]', async () => {
    const server = await startServer()
    expect(await statusOf(server.place.healthPort, '/readyz')).toBe(500)
    const agent = await startAgent(server.place.agentPort)
    await lab.ready(server)
    await lab.agentReady(agent)
    expect(await statusOf(agent.place.healthPort, '/readyz')).toBe(200)
    await agent.program.stop('SIGKILL')
    await eventually('not ready', async () => {
      return (await statusOf(server.place.healthPort, '/readyz')) === 500
    })
  })

  test('an agent without a server is alive and not ready [TUN-U9]', async () => {
    const agent = await startAgent(1) // nobody listens there
    expect(await statusOf(agent.place.healthPort, '/healthz')).toBe(200)
    expect(await statusOf(agent.place.healthPort, '/readyz')).toBe(503)
  })

  test('TestProxy_Agent_Disconnect_Persistent_Connection: an open connection ends with its agent [TUN-U7, TUN-W11]', async () => {
    const server = await startServer()
    const agent = await startAgent(server.place.agentPort)
    await lab.ready(server)
    const socket = await server.dial(echo.address)
    expect(await exchange(socket, 'here')).toBe('here')
    const ended = once(socket, 'end')
    socket.resume()
    await agent.program.stop('SIGKILL')
    await ended
    await lab.ready(server, 0)
  })

  test('TestAgentRestartReconnect: a new agent takes over [TUN-U8]', async () => {
    const server = await startServer()
    const first = await startAgent(server.place.agentPort)
    await lab.ready(server)
    expect(await echoes(server)).toBe(true)
    await first.program.stop('SIGKILL')
    await startAgent(server.place.agentPort)
    await eventually('an echo through the new agent', () => echoes(server))
  })

  test('TestServerRestartAgentReconnect: the agent finds the server again [TUN-U8]', async () => {
    const server = await startServer()
    const agent = await startAgent(server.place.agentPort)
    await lab.ready(server)
    await server.program.stop('SIGKILL')
    await lab.agentReady(agent, 0)
    const again = await lab.server({ maker: pair.server, mode, place: server.place })
    await lab.ready(again)
    expect(await echoes(again)).toBe(true)
  })

  test('TestAgent_MultipleConn: a second agent of the same id leaves the traffic of the first alone [TUN-U7, TUN-P6]', async () => {
    const server = await startServer()
    const first = await startAgent(server.place.agentPort, '--agent-id=twin')
    await lab.ready(server)
    const socket = await server.dial(echo.address)
    expect(await exchange(socket, 'before')).toBe('before')
    const second = await startAgent(server.place.agentPort, '--agent-id=twin')
    await lab.agentReady(second)
    expect(await exchange(socket, 'beside')).toBe('beside')
    expect(await echoes(server)).toBe(true)
    await second.program.stop('SIGKILL')
    expect(await exchange(socket, 'after')).toBe('after')
    await eventually('an echo through the first', () => echoes(server))
    expect(first.program.isGone).toBe(false)
  })

  test('TestProxyHandle_AfterDrain: an agent that drains still serves when it is alone [TUN-U9]', async () => {
    const server = await startServer()
    const agent = await startAgent(server.place.agentPort)
    await lab.ready(server)
    const socket = await server.dial(echo.address)
    expect(await exchange(socket, 'before')).toBe('before')
    agent.program.signal('SIGTERM')
    expect(await exchange(socket, 'while draining')).toBe('while draining')
    expect(await echoes(server)).toBe(true)
    socket.destroy()
  })

  test('TestBasicHAProxyServer: three servers behind a balancer, one dies, another comes [TUN-U8]', async () => {
    const count = ['--server-count=3']
    const servers = await Promise.all([startServer(count), startServer(count), startServer(count)])
    const balancer = await TcpBalancer.start(...servers.map(({ place }) => place.agentPort))
    try {
      const agent = await startAgent(
        balancer.port,
        '--sync-forever',
        '--sync-interval=100ms',
        '--sync-interval-cap=500ms',
      )
      await lab.agentReady(agent, 3)
      for (const server of servers) expect(await echoes(server)).toBe(true)
      const [dying, ...others] = servers
      if (!dying) throw new Error('no server')
      balancer.backends.delete(dying.place.agentPort)
      await dying.program.stop('SIGKILL')
      await lab.agentReady(agent, 2)
      for (const server of others) expect(await echoes(server)).toBe(true)
      const coming = await startServer(count)
      balancer.backends.add(coming.place.agentPort)
      await lab.agentReady(agent, 3)
      expect(await echoes(coming)).toBe(true)
    } finally {
      await balancer.close()
    }
  })
})

describe.skipIf(!tunnelPeersAreHere).each(pairs)('$name', (pair) => {
  test('TestCustomALPN: an agent that offers another protocol as well is served [TUN-U1]', async () => {
    const server = await lab.server({ maker: pair.server, mode: 'http-connect' })
    const flags = ['--alpn-proto=sallyport-test']
    await lab.agent({ maker: pair.agent, port: server.place.agentPort, flags })
    await lab.ready(server)
    expect(await echoes(server)).toBe(true)
  })
})

describe.skipIf(!tunnelPeersAreHere).each(pairs)('$name', (pair) => {
  test('the agent follows a static count of servers from 1 to 4 [TUN-U16]', async () => {
    const servers: TunnelServer[] = []
    const balancer = await TcpBalancer.start()
    const grow = async (count: number): Promise<void> => {
      while (servers.length < count) {
        const flags = [`--server-count=${count}`]
        servers.push(await lab.server({ maker: pair.server, mode: 'http-connect', flags }))
      }
      for (const { place } of servers) balancer.backends.add(place.agentPort)
    }
    try {
      await grow(1)
      const flags = ['--sync-forever', '--sync-interval=200ms', '--sync-interval-cap=500ms']
      const agent = await lab.agent({ maker: pair.agent, port: balancer.port, flags })
      for (const count of [1, 4]) {
        await grow(count)
        await lab.agentReady(agent, count)
        const known = 'konnectivity_network_proxy_agent_known_server_count'
        await eventually(`${count} servers are known`, async () => {
          return (await agent.metrics()).get(known) === count
        })
        for (const server of servers) await lab.ready(server)
        expect(servers).toHaveLength(count)
      }
    } finally {
      await balancer.close()
    }
  })
})

const ourAgents = pairs.filter(({ agent }) => agent === 'ours')
describe.skipIf(!tunnelPeersAreHere).each(ourAgents)('$name, roll-out', (pair) => {
  test('an agent that drains keeps what is open, gets nothing new and ends when it is idle [TUN-W13, TUN-P10]', async () => {
    const server = await lab.server({ maker: pair.server, mode: 'http-connect' })
    const port = server.place.agentPort
    const old = await lab.agent({ maker: pair.agent, port })
    await lab.ready(server)
    const socket = await server.dial(echo.address)
    await lab.agent({ maker: pair.agent, port })
    await lab.ready(server, 2)
    old.program.signal('SIGTERM')
    const dialled = 'konnectivity_network_proxy_agent_open_endpoint_connections'
    await eventually('new dials go to the other agent', async () => {
      const opened = await Promise.all([1, 2, 3, 4, 5, 6].map(() => server.dial(echo.address)))
      const atOld = (await old.metrics()).get(dialled)
      for (const each of opened) each.destroy()
      return atOld === 1
    })
    expect(await exchange(socket, 'still open')).toBe('still open')
    expect(old.program.isGone).toBe(false)
    socket.destroy()
    expect(await old.program.gone).toBe(0)
    expect(await echoes(server)).toBe(true)
  })
})
