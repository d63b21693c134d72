import { expect, test } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { keepTunnel, tunnelNameIn } from './token-renewal.ts'
import { BackendUpstreams } from './upstreams.ts'

const dialer = { dial: () => Promise.reject(new Error('nobody is there')) }

test('a token that cannot be made, or a guard that is not reached, ends nothing [ADDON-X8]', async () => {
  const over = new AbortController()
  let asked = 0
  const token = async (): Promise<string> => {
    asked += 1
    if (asked === 4) over.abort()
    if (asked % 2 === 0) throw new Error('no key')
    return 't'
  }
  const backend = { scheme: 'http', host: '10.0.0.1', port: 80 } as const
  const upstream = new BackendUpstreams(dialer, systemClock).upstreamFor(backend)
  const renewal = { upstream, host: 'api', path: '/', everyMs: 1, token }
  await keepTunnel(renewal, 'a', over.signal)
  expect(asked).toBe(4)
})

test.each([
  [['abc_-1'], 'abc_-1'],
  [[], undefined],
  [['a, b'], undefined],
  [['a', 'b'], undefined],
  [['x'.repeat(65)], undefined],
  [['a\u00e4'], undefined],
])('the name of a tunnel in %j is %j', (values, expected) => {
  const rawHeaders = values.flatMap((value) => ['Sallyport-Tunnel', value])
  expect(tunnelNameIn(rawHeaders)).toBe(expected)
})
