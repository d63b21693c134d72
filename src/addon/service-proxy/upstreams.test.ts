import { type Duplex, duplexPair } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import type { ProxyBackend } from './target.ts'
import { BackendUpstreams } from './upstreams.ts'

const clock = { now: () => 0, monotonic: () => 0 }
const nobody = { dial: () => Promise.reject(new Error('nobody is there')) }
const trust = { caPem: 'ca', serverName: 'a' }
const secure: ProxyBackend = { scheme: 'https', host: '10.0.0.1', port: 1, trust }

describe('connections are shared', () => {
  test('by requests to the same backend', () => {
    const upstreams = new BackendUpstreams(nobody, clock)
    const again = { ...secure, trust: { ...trust } }
    expect(upstreams.upstreamFor(again)).toBe(upstreams.upstreamFor(secure))
  })

  test.each<[string, Partial<ProxyBackend>]>([
    ['scheme', { scheme: 'http' }],
    ['host', { host: '10.0.0.11' }],
    ['port', { port: 11 }],
    ['CA', { trust: { ...trust, caPem: 'other' } }],
    ['server name', { trust: { ...trust, serverName: 'b' } }],
  ])('by no two that differ in their %s', (_what, difference) => {
    const upstreams = new BackendUpstreams(nobody, clock)
    const other = { ...secure, ...difference }
    expect(upstreams.upstreamFor(other)).not.toBe(upstreams.upstreamFor(secure))
  })

  test('by none that is verified with one that is not', () => {
    const upstreams = new BackendUpstreams(nobody, clock)
    const { trust: _, ...unverified } = secure
    expect(upstreams.upstreamFor(unverified)).not.toBe(upstreams.upstreamFor(secure))
  })
})

describe('connections that are idle', () => {
  const plain = (port: number): ProxyBackend => ({ scheme: 'http', host: '10.0.0.1', port })

  async function withIdle() {
    const [ours, theirs] = duplexPair()
    const dialer = { dial: (): Promise<Duplex> => Promise.resolve(ours) }
    const upstreams = new BackendUpstreams(dialer, clock)
    theirs.on('data', () => theirs.write('HTTP/1.1 204 No Content\r\n\r\n'))
    const end = vi.fn<() => void>()
    const quiet = { head: () => {}, body: () => {}, settle: () => {}, failed: () => {}, end }
    upstreams.upstreamFor(plain(1)).send({ method: 'GET', path: '/', headers: [] }, quiet)
    await vi.waitUntil(() => end.mock.calls.length === 1)
    return { upstreams, ours }
  }

  test('are closed at the end', async () => {
    const { upstreams, ours } = await withIdle()
    expect(ours.destroyed).toBe(false)
    upstreams.close()
    expect(ours.destroyed).toBe(true)
  })

  test('are closed when more backends than are remembered were used since', async () => {
    const { upstreams, ours } = await withIdle()
    for (let port = 2; port <= 1_024; port++) upstreams.upstreamFor(plain(port))
    expect(ours.destroyed).toBe(false)
    upstreams.upstreamFor(plain(1_025))
    expect(ours.destroyed).toBe(true)
  })
})
