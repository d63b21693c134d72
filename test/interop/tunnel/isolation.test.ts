import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FrontMode } from '../../../bench/tunnel/pairs-flags.ts'
import { openBlackhole } from '../../support/blackhole.ts'
import { eventually } from '../../support/eventually.ts'
import { echoTarget, type TcpTarget, tcpTarget } from '../../support/tcp-target.ts'
import { exchange, readBytes } from '../../support/tunnel-front.ts'
import { type TunnelAgent, TunnelLab, type TunnelServer } from '../../support/tunnel-lab.ts'
import { pairs, tunnelPeersAreHere } from '../../support/tunnel-pairs.ts'

// What upstream's server cannot do, whoever its agent is.
const modes: readonly FrontMode[] = ['grpc', 'http-connect']
const cases = pairs
  .filter(({ server }) => server === 'ours')
  .flatMap((pair) => modes.map((mode) => [pair.name, mode, pair] as const))

describe.skipIf(!tunnelPeersAreHere).each(cases)('%s, %s', (_name, mode, pair) => {
  let lab: TunnelLab
  let server: TunnelServer
  let agent: TunnelAgent
  let target: TcpTarget | undefined

  beforeEach(async () => {
    lab = await TunnelLab.open()
    server = await lab.server({ maker: pair.server, mode })
    agent = await lab.agent({ maker: pair.agent, port: server.place.agentPort })
    await lab.ready(server)
  })

  afterEach(async () => {
    await target?.close()
    target = undefined
    await lab.close()
  })

  test('with fifty connections nobody reads, a dial and an echo on the next are answered at once [TUN-I12, TUN-P1]', async () => {
    const piece = Buffer.alloc(1 << 20)
    target = await tcpTarget((socket) => {
      const fill = (): void => {
        while (socket.write(piece));
      }
      socket.once('data', () => {
        socket.on('drain', fill)
        fill()
      })
    })
    const unread: Socket[] = []
    for (let dial = 0; dial < 50; dial += 1) {
      const socket = await server.dial(target.address)
      socket.pause().write('x')
      unread.push(socket)
    }
    const echo = await echoTarget()
    try {
      const began = performance.now()
      const socket = await server.dial(echo.address)
      expect(await exchange(socket, 'still here')).toBe('still here')
      expect(performance.now() - began).toBeLessThan(2_000)
      socket.destroy()
    } finally {
      for (const socket of unread) socket.destroy()
      await echo.close()
    }
  })

  test('dials that are pending when their agent is killed end at once [TUN-I14, TUN-P4]', async () => {
    const hole = await openBlackhole()
    try {
      const dials = Array.from({ length: 20 }, () => server.dial(hole.address))
      const settled = Promise.allSettled(dials)
      const name = 'konnectivity_network_proxy_server_pending_backend_dials'
      await eventually('20 dials pending', async () => (await server.metrics()).get(name) === 20)
      const began = performance.now()
      await agent.program.stop('SIGKILL')
      for (const { status } of await settled) expect(status).toBe('rejected')
      expect(performance.now() - began).toBeLessThan(3_000)
      expect((await server.metrics()).get(name)).toBe(0)
    } finally {
      await hole.close()
    }
  })
})

describe.skipIf(!tunnelPeersAreHere).each(cases.filter(([, mode]) => mode === 'http-connect'))(
  '%s, %s',
  (_name, mode, pair) => {
    test('a target that speaks first is heard after the answer [TUN-W23]', async () => {
      const lab = await TunnelLab.open()
      const greeter = await tcpTarget((socket) => socket.write('welcome'))
      try {
        const server = await lab.server({ maker: pair.server, mode })
        await lab.agent({ maker: pair.agent, port: server.place.agentPort })
        await lab.ready(server)
        for (let dial = 0; dial < 20; dial += 1) {
          const socket = await server.dial(greeter.address)
          expect(await readBytes(socket, 7)).toBe('welcome')
          socket.destroy()
        }
      } finally {
        await greeter.close()
        await lab.close()
      }
    })
  },
)
