import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stateOf } from '../../../bench/soak/process-state.ts'
import { TunnelLab, type TunnelServer } from '../../support/tunnel-lab.ts'
import { pairs, tunnelPeersAreHere } from '../../support/tunnel-pairs.ts'

const ours = pairs.filter(({ server }) => server === 'ours')
const bytes = 100 << 20
/** The machine may be busy with others: only what no round shows was lost to the stopped reader. */
const rounds = 12
/** More than a window for the stopped connection at each of the two ends, and what a collector leaves lying about. */
const flatMiB = 128

describe.skipIf(!tunnelPeersAreHere).each(ours.map((pair) => [pair.name, pair] as const))(
  '%s',
  (_name, pair) => {
    let lab: TunnelLab
    let server: TunnelServer
    let target: string

    beforeEach(async () => {
      lab = await TunnelLab.open()
      server = await lab.server({ maker: pair.server, mode: 'http-connect' })
      await lab.agent({ maker: pair.agent, port: server.place.agentPort })
      target = await lab.loadTarget()
      await lab.ready(server)
    })

    afterEach(() => lab.close())

    const speed = async (stopped: number): Promise<number> => {
      const bulk = ['--target', target, '--connections', '50', '--bytes', String(bytes)]
      const flags = [...bulk, '--stopped', String(stopped)]
      const { mbPerSecond } = await lab.load(server, 'download', ...flags)
      if (typeof mbPerSecond !== 'number') throw new Error('no speed was measured')
      return mbPerSecond
    }

    test('one reader that has stopped costs fifty bulk connections less than a tenth, and memory stays flat [TUN-I13]', async () => {
      await speed(0)
      const before = stateOf(server.program.pid).rssMiB
      const seen: number[] = []
      while (seen.length < rounds && !seen.some((ratio) => ratio > 0.9)) {
        const [alone, beside] = [await speed(0), await speed(1)]
        seen.push(beside / alone)
      }
      expect(Math.max(...seen)).toBeGreaterThan(0.9)
      expect(stateOf(server.program.pid).rssMiB - before).toBeLessThan(flatMiB)
    })
  },
)
