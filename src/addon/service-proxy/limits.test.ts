import { describe, expect, test } from 'vitest'
import type { Clock, KubeObject } from '../../core/index.ts'
import { Budgets, limitsOfService, type ProxyLimits } from './limits.ts'
import { BytePace, RateGate } from './pace.ts'

/** Time that a test turns. */
class TurnedClock implements Clock {
  ms = 1_000
  wall = 0
  now(): number {
    return this.wall
  }
  monotonic(): number {
    return this.ms
  }
}

const limits: ProxyLimits = {
  requestsPerSecond: 10,
  requestBurst: 5,
  maxRequests: 2,
  maxTunnels: 1,
  bytesPerSecond: 1_000,
  maxRequestMs: 60_000,
  maxTunnelMs: 60_000,
  idleMs: 60_000,
}

describe('requests', () => {
  test('pass up to the burst at once, then at their rate [ADDON-R39]', () => {
    const clock = new TurnedClock()
    const gate = new RateGate(clock)
    const taken = Array.from({ length: 7 }, () => gate.take(10, 5))
    expect(taken).toEqual([0, 0, 0, 0, 0, 100, 100])
    clock.ms += 100
    expect([gate.take(10, 5), gate.take(10, 5)]).toEqual([0, 100])
    expect(gate.isIdle).toBe(false)
    clock.ms += 500
    expect(gate.isIdle).toBe(true)
  })

  test('are not let through by a wall clock that jumps [ADDON-T63]', () => {
    const clock = new TurnedClock()
    const gate = new RateGate(clock)
    for (let count = 0; count < 5; count++) gate.take(10, 5)
    clock.wall += 3_600_000
    expect(gate.take(10, 5)).toBe(100)
  })
})

describe('bytes', () => {
  test('of a second may come at once; after that each waits for those before it [ADDON-R40]', () => {
    const clock = new TurnedClock()
    const pace = new BytePace(clock)
    expect(pace.pass(1_000, 1_000)).toBe(0)
    expect(pace.pass(500, 1_000)).toBe(500)
    expect(pace.pass(500, 1_000)).toBe(1_000)
    clock.ms += 1_000
    expect(pace.pass(0, 1_000)).toBe(0)
    expect(pace.pass(100, 1_000)).toBe(100)
  })
})

describe('budgets', () => {
  const open = () => {
    const clock = new TurnedClock()
    return { clock, budgets: new Budgets(clock) }
  }

  test('count places until they are left, once each [ADDON-R39]', () => {
    const { budgets } = open()
    const claims = [{ key: 'ann', limits }]
    const first = budgets.enter('Request', claims)
    budgets.enter('Request', claims)
    expect(() => budgets.enter('Request', claims)).toThrow('too many requests open')
    budgets.enter('Tunnel', claims)
    expect(() => budgets.enter('Tunnel', claims)).toThrow('too many tunnels open')
    first.leave()
    first.leave()
    budgets.enter('Request', claims)
    expect(() => budgets.enter('Request', claims)).toThrow(/try again later/)
    budgets.enter('Request', [{ key: 'bob', limits }])
  })

  test('of a Service come on top of those of the user [ADDON-P7]', () => {
    const { budgets } = open()
    const own = { ...limits, bytesPerSecond: 100 }
    const admission = budgets.enter('Request', [
      { key: 'ann', limits },
      { key: 'ann\0n/web', limits: own },
    ])
    expect(admission.toClient(200)).toBe(1_000)
    expect(admission.toUpstream(50)).toBe(0)
    const elsewhere = budgets.enter('Request', [{ key: 'ann', limits }])
    expect(elsewhere.toClient(800)).toBe(0)
    expect(elsewhere.toClient(100)).toBe(100)
  })

  test('tell after how many seconds there is room', () => {
    const { budgets } = open()
    const slow = { ...limits, requestsPerSecond: 0.25, requestBurst: 1, maxRequests: 9 }
    budgets.enter('Request', [{ key: 'ann', limits: slow }])
    const refusal = (): unknown => {
      try {
        return budgets.enter('Request', [{ key: 'ann', limits: slow }])
      } catch (error) {
        return error
      }
    }
    expect(refusal()).toMatchObject({
      reason: 'TooManyRequests',
      details: { retryAfterSeconds: 4 },
    })
  })

  test('are forgotten when nothing of them is used, and not before', () => {
    const { budgets, clock } = open()
    const admission = budgets.enter('Request', [
      { key: 'ann', limits: { ...limits, maxRequests: 1 } },
    ])
    clock.ms += 60_000
    budgets.sweep()
    expect(() =>
      budgets.enter('Request', [{ key: 'ann', limits: { ...limits, maxRequests: 1 } }]),
    ).toThrow(/open/)
    admission.leave()
    budgets.sweep()
    expect(
      budgets.enter('Request', [{ key: 'ann', limits: { ...limits, maxRequests: 1 } }]),
    ).toBeDefined()
  })
})

describe('a Service', () => {
  const service = (annotations: Record<string, string>): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', annotations },
  })

  test('without such annotations has no limits of its own', () => {
    expect(limitsOfService(service({ other: '1' }), limits)).toBeUndefined()
  })

  test.each([
    ['proxy-bytes-per-second', '500', { bytesPerSecond: 500 }],
    ['proxy-bytes-per-second', '1Mi', { bytesPerSecond: 1_000 }],
    ['proxy-max-tunnel-age', '5s', { maxTunnelMs: 5_000 }],
    ['proxy-max-tunnel-age', '500h', { maxTunnelMs: 60_000 }],
    ['proxy-max-requests', '1', { maxRequests: 1 }],
  ])('may ask for %s %s within the bounds [ADDON-P7]', (name, value, expected) => {
    expect(limitsOfService(service({ [`sallyport.dev/${name}`]: value }), limits)).toEqual({
      ...limits,
      ...expected,
    })
  })

  test.each(['', '0', '-1', '1.5', 'x', '1e9', ' 1'])(
    'cannot ask for %j requests [ADDON-P7]',
    (value) => {
      const odd = service({ 'sallyport.dev/proxy-max-requests': value })
      expect(() => limitsOfService(odd, limits)).toThrow('cannot be read')
    },
  )

  test('cannot ask for a limit that there is not [ADDON-P7]', () => {
    const misspelt = service({ 'sallyport.dev/proxy-max-request': '1' })
    const why = 'has a limit that is not known: sallyport.dev/proxy-max-request'
    expect(() => limitsOfService(misspelt, limits)).toThrow(why)
  })

  test.each([
    ['proxy-request-burst', 'a number of 1 or more'],
    ['proxy-bytes-per-second', 'a size such as 64Ki'],
    ['proxy-idle-timeout', 'a duration such as 30s'],
  ])('is told how %s is written [ADDON-P7]', (name, form) => {
    const odd = service({ [`sallyport.dev/${name}`]: 'many' })
    expect(() => limitsOfService(odd, limits)).toThrow(
      `sallyport.dev/${name}: "many" is not ${form}`,
    )
  })
})
