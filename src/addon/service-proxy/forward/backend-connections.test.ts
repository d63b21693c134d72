import { type Duplex, duplexPair } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import type { ProxyBackend } from '../target.ts'
import { BackendConnections } from './backend-connections.ts'

const clock = { now: () => 0, monotonic: () => 0 }
const nobody = { dial: () => Promise.reject(new Error('nobody is there')) }
const trust = { caPem: 'ca', serverName: 'a' }
const secure: ProxyBackend = { scheme: 'https', host: '10.0.0.1', port: 1, trust }

describe('connections are shared', () => {
  test('by requests to the same backend', () => {
    const connections = new BackendConnections(nobody, clock)
    const again = { ...secure, trust: { ...trust } }
    expect(connections.wireFor(again)).toBe(connections.wireFor(secure))
    expect(connections.agentFor(again)).toBe(connections.agentFor(secure))
  })

  test.each<[string, Partial<ProxyBackend>]>([
    ['scheme', { scheme: 'http' }],
    ['host', { host: '10.0.0.11' }],
    ['port', { port: 11 }],
    ['CA', { trust: { ...trust, caPem: 'other' } }],
    ['server name', { trust: { ...trust, serverName: 'b' } }],
  ])('by no two that differ in their %s', (_what, difference) => {
    const connections = new BackendConnections(nobody, clock)
    const other = { ...secure, ...difference }
    expect(connections.wireFor(other)).not.toBe(connections.wireFor(secure))
    expect(connections.agentFor(other)).not.toBe(connections.agentFor(secure))
  })

  test('by none that is verified with one that is not', () => {
    const connections = new BackendConnections(nobody, clock)
    const { trust: _, ...unverified } = secure
    expect(connections.wireFor(unverified)).not.toBe(connections.wireFor(secure))
  })
})

describe('connections that are idle', () => {
  const plain = (port: number): ProxyBackend => ({ scheme: 'http', host: '10.0.0.1', port })

  async function withIdle() {
    const [ours, theirs] = duplexPair()
    const dialer = { dial: (): Promise<Duplex> => Promise.resolve(ours) }
    const connections = new BackendConnections(dialer, clock)
    theirs.on('data', () => theirs.write('HTTP/1.1 204 No Content\r\n\r\n'))
    const end = vi.fn<() => void>()
    const quiet = { head: () => {}, body: () => {}, settle: () => {}, failed: () => {}, end }
    connections.wireFor(plain(1)).ask('GET / HTTP/1.1\r\n\r\n', false, quiet)
    await vi.waitUntil(() => end.mock.calls.length === 1)
    return { connections, ours }
  }

  test('are closed at the end', async () => {
    const { connections, ours } = await withIdle()
    expect(ours.destroyed).toBe(false)
    connections.close()
    expect(ours.destroyed).toBe(true)
  })

  test('are closed when more backends than are remembered were asked since', async () => {
    const { connections, ours } = await withIdle()
    for (let port = 2; port <= 1_024; port++) connections.wireFor(plain(port))
    expect(ours.destroyed).toBe(false)
    connections.wireFor(plain(1_025))
    expect(ours.destroyed).toBe(true)
  })
})
