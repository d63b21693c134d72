import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FrontMode } from '../../../bench/tunnel/pairs-flags.ts'
import { type Transport, TunnelLab, type TunnelServer } from '../../support/tunnel-lab.ts'
import { pairs, tunnelPeersAreHere } from '../../support/tunnel-pairs.ts'

const hundredMiB = 100 << 20
const fronts: readonly (readonly [FrontMode, Transport])[] = [
  ['grpc', 'uds'],
  ['grpc', 'tcp'],
  ['http-connect', 'uds'],
  ['http-connect', 'tcp'],
]
const cases = pairs.flatMap((pair) =>
  fronts.map(([mode, transport]) => [pair.name, mode, transport, pair] as const),
)

describe.skipIf(!tunnelPeersAreHere).each(cases)(
  '%s, %s over %s',
  (_name, mode, transport, pair) => {
    let lab: TunnelLab
    let server: TunnelServer
    let target: string

    beforeAll(async () => {
      lab = await TunnelLab.open()
      server = await lab.server({ maker: pair.server, mode, transport })
      await lab.agent({ maker: pair.agent, port: server.place.agentPort })
      target = await lab.loadTarget()
      await lab.ready(server)
    })

    afterAll(() => lab.close())

    test('100 MiB each way at once arrive with equal hashes [TUN-I6, TUN-I7]', async () => {
      const flags = ['--target', target, '--bytes', String(hundredMiB), '--hash']
      const moved = await Promise.all([
        lab.load(server, 'upload', ...flags),
        lab.load(server, 'download', ...flags),
      ])
      expect(moved.map(({ bytes }) => bytes)).toEqual([hundredMiB, hundredMiB])
    })

    test('ten connections echo at the same time [TUN-I7]', async () => {
      const flags = ['--target', target, '--connections', '10', '--count', '100', '--size', '5000']
      expect(await lab.load(server, 'echo', ...flags)).toMatchObject({ ops: 1000 })
    })

    test('many dials, and none fails', async () => {
      const flags = ['--target', target, '--connections', '10', '--count', '300']
      const { ops, failures } = await lab.load(server, 'dials', ...flags)
      expect({ ops, failures }).toEqual({ ops: 300, failures: undefined })
    })
  },
)
