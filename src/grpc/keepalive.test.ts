import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../core/index.ts'
import { frameType, numberFrame, preface } from './http2/frames.ts'
import { Http2Connection } from './http2/index.ts'
import { Heartbeat, type PingTarget } from './keepalive.ts'

describe('a heartbeat', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const clock = { now: () => Date.now(), monotonic: () => Date.now() }

  /** A peer that does `answer` when it is asked, and a heartbeat of 30 s and 20 s. */
  function beating(answer: (peer: { lastReceivedAt: number }) => void) {
    const peer = {
      lastReceivedAt: Date.now(),
      asked: 0,
      ping() {
        this.asked++
        answer(this)
      },
    } satisfies PingTarget & { asked: number }
    const found = { silent: false }
    const heartbeat = new Heartbeat(peer, { timeMs: 30_000, timeoutMs: 20_000 }, clock, () => {
      found.silent = true
      heartbeat.stop()
    })
    return { peer, found, heartbeat }
  }

  test('[TUN-W14, TUN-P8] finds a peer that is gone within a minute', () => {
    const { peer, found } = beating(() => {})
    vi.advanceTimersByTime(49_999)
    expect([peer.asked, found.silent]).toEqual([1, false])
    vi.advanceTimersByTime(1)
    expect(found.silent).toBe(true)
  })

  test('[TUN-W14] keeps one that answers, and does not ask one that speaks by itself', () => {
    const { peer, found } = beating((each) => {
      each.lastReceivedAt = Date.now()
    })
    vi.advanceTimersByTime(3_600_000)
    expect(found.silent).toBe(false)
    const { asked } = peer
    for (let times = 0; times < 100; times++) {
      vi.advanceTimersByTime(20_000)
      peer.lastReceivedAt = Date.now()
    }
    expect([found.silent, peer.asked - asked]).toEqual([false, 0])
  })

  test('[TUN-W14] keeps one whose answer is late, for as long as anything comes from it', () => {
    const { peer, found } = beating(() => {})
    vi.advanceTimersByTime(30_000)
    for (let times = 0; times < 100; times++) {
      vi.advanceTimersByTime(15_000)
      peer.lastReceivedAt = Date.now()
    }
    expect(found.silent).toBe(false)
  })
})

test('[TUN-W14] every frame is a sign of life, not data and answers alone', async () => {
  let time = 1
  const clock = { ...systemClock, monotonic: () => time }
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const peer = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = (await once(server, 'connection')) as [net.Socket]
  const connection = new Http2Connection(
    socket,
    { side: 'server', maxStreams: 1, clock },
    { request: () => {}, idle: () => {}, closed: () => {} },
  )
  expect(connection.lastReceivedAt).toBe(1)
  time = 2
  const heard = once(socket, 'data')
  peer.write(Buffer.concat([preface, numberFrame(frameType.WINDOW_UPDATE, 0, 1)]))
  await heard
  expect(connection.lastReceivedAt).toBe(2)
  connection.destroy()
  peer.destroy()
  server.close()
})
