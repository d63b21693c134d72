import { expect, test } from 'vitest'
import { systemClock } from '../../core/index.ts'
import { BackendConnections } from './forward/backend-connections.ts'
import type { Forwarding } from './forward/exchange.ts'
import { keepTunnel, tunnelNameIn } from './token-renewal.ts'

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
  const parts: Partial<Forwarding> = {
    connections: new BackendConnections(dialer, systemClock),
    backend,
    renewal: { everyMs: 1, token },
  }
  await keepTunnel(parts as Forwarding, 'a', over.signal)
  expect(asked).toBe(4)
})

test.each([
  ['abc_-1', 'abc_-1'],
  ['a, b', undefined],
  [['a', 'b'], undefined],
  ['x'.repeat(65), undefined],
  ['a\u00e4', undefined],
])('the name of a tunnel in %j is %j', (value, expected) => {
  expect(tunnelNameIn({ 'sallyport-tunnel': value })).toBe(expected)
})
