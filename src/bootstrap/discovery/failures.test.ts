import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../core/index.ts'
import { labMaterial } from '../../http/tls-lab.suite.ts'
import { discoverCluster } from './discover-cluster.ts'
import { freeAddress, type LabAnswer, LabCluster, labTokenText } from './discovery-lab.suite.ts'
import type { DiscoveryMethod, DiscoveryOrder, DiscoveryParts } from './options.ts'

let lab: LabCluster
beforeEach(async () => {
  lab = await LabCluster.open()
})
afterEach(() => lab.close())

const byToken = (address = lab.address): DiscoveryMethod => ({
  by: 'token',
  addresses: [address],
  token: labTokenText,
})

const find = (order: Partial<DiscoveryOrder> = {}, parts: DiscoveryParts = {}) =>
  discoverCluster({ method: byToken(), timeoutMs: 0, ...order }, parts)

describe('[DISC-C6] each failure has its own reason and next step:', () => {
  const answering =
    (status: number, body = '{}') =>
    (answer: LabAnswer) => {
      answer.status = status
      answer.body = body
      delete answer.headers['X-Kubernetes-JWS']
    }
  const html = '<!doctype html><title>Log in</title>'

  test.each([
    ['404', answering(404), 'not-a-cluster', true, 'no cluster-info'],
    ['403 to a signed request', answering(403), 'forbidden', true, 'knows token ae23dc'],
    ['429', answering(429), 'not-ready', true, 'not ready (429)'],
    ['500', answering(500), 'not-ready', true, 'not ready (500)'],
    ['503', answering(503, html), 'not-ready', true, 'not ready (503)'],
    ['418', answering(418), 'not-a-cluster', false, 'answered 418'],
    ['204', answering(204), 'not-a-cluster', false, 'answered 204'],
  ])('%s', async (_name, bend, reason, mayPass, said) => {
    lab.bend = bend
    const finding = find()
    await expect(finding).rejects.toMatchObject({ reason, mayPass, hint: expect.any(String) })
    await expect(finding).rejects.toThrow(said)
  })

  test.each([
    ['403 without a credential', answering(403), 'forbidden', true, 'without a credential'],
    [
      'a page in place of the document',
      answering(200, html),
      'not-a-cluster',
      false,
      'not with the',
    ],
    ['another object', answering(200, '{"kind":"Secret"}'), 'not-a-cluster', false, 'not with the'],
    [
      'a document that nobody has written yet',
      answering(
        200,
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"kube-public","name":"cluster-info"}}',
      ),
      'document-invalid',
      true,
      'still empty',
    ],
  ])('%s', async (_name, bend, reason, mayPass, said) => {
    lab.knowsSignedRequests = false
    lab.bend = (answer, { authorization }) => authorization === undefined && bend(answer)
    const finding = find()
    await expect(finding).rejects.toMatchObject({ reason, mayPass })
    await expect(finding).rejects.toThrow(said)
  })

  test('401 to both', async () => {
    lab.knowsSignedRequests = false
    lab.anonymous = false
    const finding = find()
    await expect(finding).rejects.toMatchObject({ reason: 'auth-refused', mayPass: true })
    await expect(finding).rejects.not.toThrow('clock')
  })

  test.each([
    ['behind', -90_000],
    ['ahead of', 600_000],
  ])('a clock that is %s the server by %d ms is named, with seconds', async (word, offsetMs) => {
    lab.anonymous = false
    const clock: Clock = { ...systemClock, now: () => Date.now() + offsetMs }
    const failure = await find({}, { clock }).catch((error: unknown) => error)
    expect(failure).toMatchObject({
      reason: 'auth-refused',
      hint: expect.stringContaining('set the clock'),
      message: expect.stringContaining(` s ${word} the server's`),
    })
    // The server tells whole seconds of some moment ago.
    const [, seconds] = /clock is (\d+) s/.exec(String(failure)) ?? []
    expect(Math.abs(Number(seconds) - Math.abs(offsetMs) / 1000)).toBeLessThan(5)
  })

  test('nothing listens', async () => {
    const finding = find({ method: byToken(await freeAddress()) })
    await expect(finding).rejects.toMatchObject({ reason: 'unreachable', mayPass: true })
    await expect(finding).rejects.toThrow('nothing listens')
  })

  test('a name that does not exist', async () => {
    const finding = find({ method: byToken('no-such-host.invalid') })
    await expect(finding).rejects.toMatchObject({ reason: 'unreachable', mayPass: true })
    await expect(finding).rejects.toThrow('cannot be resolved')
  })

  test('no TLS', async () => {
    const plain = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    plain.listen(0, '127.0.0.1')
    await once(plain, 'listening')
    const { port } = plain.address() as AddressInfo
    const finding = find({ method: byToken(`127.0.0.1:${port}`) })
    await expect(finding).rejects.toMatchObject({ reason: 'not-a-cluster', mayPass: false })
    await expect(finding).rejects.toThrow('does not speak TLS')
    plain.close()
  })

  test.each([
    ['no HTTP', 'hello\r\n\r\n', 'not-a-cluster', 'does not speak HTTP'],
    ['an end in place of an answer', '', 'unreachable', 'closed the connection'],
  ])('%s', async (_name, bytes, reason, said) => {
    const { certPem, keyPem } = await labMaterial(lab.ca)
    const odd = createTlsServer({ cert: certPem, key: keyPem.reveal() }, (socket) => {
      socket.once('data', () => socket.end(bytes))
    })
    odd.listen(0, '127.0.0.1')
    await once(odd, 'listening')
    const { port } = odd.address() as AddressInfo
    const finding = find({ method: byToken(`127.0.0.1:${port}`) })
    await expect(finding).rejects.toMatchObject({ reason })
    await expect(finding).rejects.toThrow(said)
    odd.close()
  })

  test('silence', async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const finding = find({ method: byToken(`127.0.0.1:${port}`), timeoutMs: 300 })
    await expect(finding).rejects.toMatchObject({ reason: 'deadline-exceeded' })
    await expect(finding).rejects.toThrow('did not answer in time')
    for (const socket of sockets) socket.destroy()
    silent.close()
  })

  test('an answer without end', async () => {
    lab.bend = (answer) => {
      answer.body = Buffer.alloc(1024 * 1024 + 1)
    }
    await expect(find()).rejects.toMatchObject({ reason: 'not-a-cluster' })
  })

  test('being told to end', async () => {
    const ending = new AbortController()
    lab.bend = () => ending.abort()
    await expect(find({}, { signal: ending.signal })).rejects.toMatchObject({ reason: 'aborted' })
  })
})

describe('[DISC-R2, DISC-T7] a server that is not ready yet', () => {
  /** Time passes only while it waits. */
  class WaitingClock implements Clock {
    waits: number[] = []
    now = () => Date.now()
    monotonic = () => this.waits.reduce((sum, ms) => sum + ms, 0)
    pause = (ms: number): Promise<void> => {
      this.waits.push(ms)
      return Promise.resolve()
    }
  }
  const patiently = (clock: WaitingClock, onProgress: DiscoveryParts['onProgress'] = () => {}) =>
    find({ timeoutMs: 60_000 }, { clock, pause: clock.pause, onProgress })

  test('is waited for, whatever it says meanwhile', async () => {
    const clock = new WaitingClock()
    const troubles = [404, 503, 429, 500, 502]
    lab.bend = (answer) => {
      const trouble = troubles.shift()
      if (trouble !== undefined) answer.status = trouble
    }
    expect(await patiently(clock)).toMatchObject({ asked: lab.address })
    expect(clock.waits).toHaveLength(5)
  })

  test('is waited for until the token has signed', async () => {
    const clock = new WaitingClock()
    const seen: string[] = []
    lab.knowsSignedRequests = false
    lab.signs = false
    await patiently(clock, (progress) => {
      if (progress.step !== 'waiting') return
      seen.push(progress.failure.reason)
      lab.signs = true
    })
    expect(seen).toEqual(['signature-absent'])
  })

  describe.each([
    [
      'though it knows others',
      { othersSign: true },
      /has signatures of other tokens and none of ae23dc/,
    ],
    [
      'though it is not new',
      { createdAt: Date.now() - 6 * 60_000 },
      /has no signature of token ae23dc or any other, and is not new/,
    ],
  ])('a token that it does not know, %s', (_name, state, message) => {
    beforeEach(() => {
      lab.knowsSignedRequests = false
      lab.signs = false
      Object.assign(lab, state)
    })

    test('is said at once and given up after half a minute, with its own code', async () => {
      const clock = new WaitingClock()
      const seen: string[] = []
      const finding = patiently(clock, (progress) => {
        if (progress.step === 'waiting') seen.push(progress.failure.message)
      })
      await expect(finding).rejects.toMatchObject({
        code: 'TOKEN_UNKNOWN',
        reason: 'token-unknown',
      })
      expect(seen[0]).toMatch(message)
      expect(clock.monotonic()).toBeGreaterThan(20_000)
      expect(clock.monotonic()).toBeLessThan(30_000)
    })

    test('is found if it is made meanwhile', async () => {
      const clock = new WaitingClock()
      const finding = patiently(clock, () => {
        lab.signs = clock.monotonic() > 10_000
      })
      expect(await finding).toMatchObject({ asked: lab.address })
    })

    test.each([
      ['is waited for as long as is said', { tokenTimeoutMs: 50_000 }, 40_000],
      ['but never longer than for anything else', { tokenTimeoutMs: 90_000 }, 50_000],
    ])('%s', async (_name, order, leastMs) => {
      const clock = new WaitingClock()
      const finding = find({ timeoutMs: 60_000, ...order }, { clock, pause: clock.pause })
      await expect(finding).rejects.toMatchObject({ reason: 'token-unknown' })
      expect(clock.monotonic()).toBeGreaterThan(leastMs)
    })

    test.each([
      ['begins anew after the server was away', 502, {}, 'deadline-exceeded'],
      ['goes on while the server wants rest', 429, { 'retry-after': '3' }, 'token-unknown'],
    ])('the half minute %s', async (_name, status, headers, reason) => {
      const clock = new WaitingClock()
      lab.bend = (answer) => {
        // Every second attempt; one without a signed request is two requests.
        if (answer.status !== 200 || clock.waits.length % 2 === 0) return
        answer.status = status
        Object.assign(answer.headers, headers)
      }
      await expect(patiently(clock)).rejects.toMatchObject({ reason })
    })
  })

  describe('a token that it does not know, with anonymous access off [DISC-S7]', () => {
    beforeEach(() => {
      lab.anonymous = false
      lab.knowsSignedRequests = false
    })

    test('is found if it is made meanwhile', async () => {
      const clock = new WaitingClock()
      const finding = patiently(clock, () => {
        lab.knowsSignedRequests = clock.monotonic() > 10_000
      })
      expect(await finding).toMatchObject({ asked: lab.address })
    })

    test('is said at once and given up after half a minute', async () => {
      const clock = new WaitingClock()
      const seen: string[] = []
      const finding = patiently(clock, (progress) => {
        if (progress.step === 'waiting') seen.push(progress.failure.reason)
      })
      await expect(finding).rejects.toMatchObject({ code: 'AUTH_REFUSED' })
      expect(seen[0]).toBe('auth-refused')
      expect(clock.monotonic()).toBeGreaterThan(20_000)
      expect(clock.monotonic()).toBeLessThan(30_000)
    })
  })

  test('a token that may not sign is given up after half a minute, with its own code', async () => {
    const clock = new WaitingClock()
    lab.bend = (answer) => {
      answer.status = 403
      delete answer.headers['X-Kubernetes-JWS']
    }
    await expect(patiently(clock)).rejects.toMatchObject({ code: 'FORBIDDEN' })
    expect(clock.monotonic()).toBeLessThan(30_000)
  })

  test('is asked less and less often, at times left to chance', async () => {
    const clock = new WaitingClock()
    lab.bend = (answer) => {
      answer.status = 503
    }
    await patiently(clock).catch(() => {})
    const [first = 0, second = 0, third = 0, fourth = 0, fifth = 0] = clock.waits
    expect(first).toBeLessThanOrEqual(1_000)
    expect(second).toBeLessThanOrEqual(2_000)
    expect(third).toBeLessThanOrEqual(4_000)
    for (const wait of [fourth, fifth]) expect(wait >= 2_500 && wait <= 5_000).toBe(true)
    expect(new Set(clock.waits).size).toBe(clock.waits.length)
  })

  test('is asked with a request that is signed anew each time [DISC-R34]', async () => {
    const clock = new WaitingClock()
    const startedAt = Date.now()
    clock.now = () => startedAt + clock.monotonic()
    lab.bend = (answer) => {
      if (lab.requests.length <= 3) answer.status = 503
    }
    await patiently(clock)
    const ends = lab.requests.map(({ authorization = '' }) => {
      const [, claims = ''] = authorization.split('.')
      return (JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number }).exp
    })
    const moments = [0, 1, 2, 3, 3].map((waits) =>
      clock.waits.slice(0, waits).reduce((sum, ms) => sum + ms, startedAt),
    )
    expect(ends).toEqual(moments.map((moment) => Math.floor(moment / 1000) + 60))
  })

  test('is not asked before it wants to be', async () => {
    const clock = new WaitingClock()
    lab.bend = (answer) => {
      if (lab.requests.length > 1) return
      answer.status = 429
      answer.headers['retry-after'] = '7'
    }
    await patiently(clock)
    expect(clock.waits).toEqual([7_000])
  })

  test('that has heard too many wrong tokens from here says when it listens again', async () => {
    lab.bend = (answer) => {
      answer.status = 429
    }
    await expect(find()).rejects.toMatchObject({
      hint: expect.stringContaining('wrong tokens, came from this address'),
    })
  })

  test('is given up at once if it wants more rest than there is time, which is told', async () => {
    const clock = new WaitingClock()
    lab.bend = (answer) => {
      answer.status = 503
      answer.headers['retry-after'] = '999999'
    }
    await expect(patiently(clock)).rejects.toThrow(
      /^gave up, since the server wants 60 s of rest and all is to be done in 60 s; .*503/,
    )
    expect(clock.waits).toEqual([])
  })

  test('in the end is given up, and the last trouble is repeated', async () => {
    const clock = new WaitingClock()
    lab.bend = (answer) => {
      answer.status = 503
    }
    const finding = patiently(clock)
    await expect(finding).rejects.toMatchObject({
      reason: 'deadline-exceeded',
      hint: expect.stringContaining('starting'),
    })
    await expect(finding).rejects.toThrow(/^gave up after 60 s; .*not ready \(503\)/)
    expect(clock.monotonic()).toBeLessThan(60_000)
  })

  test('but a wrong signature ends it at once', async () => {
    const clock = new WaitingClock()
    lab.bend = (answer) => {
      answer.headers['X-Kubernetes-JWS'] = 'no..no'
    }
    await expect(patiently(clock)).rejects.toMatchObject({ reason: 'signature-wrong' })
    expect(clock.waits).toEqual([])
  })
})
