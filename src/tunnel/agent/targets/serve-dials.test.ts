import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLogger, systemClock } from '../../../core/index.ts'
import { Activity } from '../activity.ts'
import { AgentLab, ChannelReader, closedPort } from '../agent-lab.suite.ts'
import { FakeLink } from '../fake-link.suite.ts'
import { AgentMetrics } from '../metrics.ts'
import { DialServer, type DialServerParts } from './dial-server.ts'
import { type Resolve, systemResolve } from './dial-target.ts'
import { Slots } from './slots.ts'

let lab: AgentLab
let activity: Activity
let metrics: AgentMetrics

beforeEach(async () => {
  lab = await AgentLab.open()
  activity = new Activity()
  metrics = new AgentMetrics()
})

afterEach(async () => {
  await activity.idle(AbortSignal.timeout(2_000))
  if (activity.count > 0) throw new Error('a dial or a connection was left behind')
  await lab.close()
})

function linkTo(parts: Partial<DialServerParts> = {}): { link: FakeLink; server: DialServer } {
  const server = new DialServer({
    slots: new Slots(10),
    resolve: systemResolve,
    metrics,
    clock: systemClock,
    log: silentLogger,
    activity,
    ...parts,
  })
  const link = new FakeLink()
  link.start({ dial: (dial) => server.serve(dial), drain: () => {} })
  return { link, server }
}

const accepted = (answer: Awaited<ReturnType<FakeLink['ask']>>) => {
  if (!('accepted' in answer)) throw new Error(answer.refused)
  return answer.accepted
}

test('[TUN-U12] a dial is connected, carries bytes both ways and ends with its target', async () => {
  const { link, server } = linkTo()
  const port = await lab.echo()
  const channel = accepted(await link.ask(`127.0.0.1:${port}`))
  const reader = new ChannelReader(channel)
  channel.write(Buffer.from('hello'))
  await reader.until('hello')
  expect(server.openConnections).toBe(1)
  channel.finish()
  await reader.finished
  channel.close()
  await reader.closed
  await activity.idle(AbortSignal.timeout(2_000))
  expect(server.openConnections).toBe(0)
  expect(metrics.registry.expose()).toContain('agent_dial_duration_seconds_count 1\n')
})

describe('[TUN-U2] what fails is told in the words of Go', () => {
  const unresolved =
    (code: string): Resolve =>
    () =>
      Promise.reject(Object.assign(new Error(code), { code }))

  test('a closed port', async () => {
    const port = await closedPort()
    expect(await linkTo().link.ask(`127.0.0.1:${port}`)).toEqual({
      refused: `dial tcp 127.0.0.1:${port}: connect: connection refused`,
    })
    expect(metrics.registry.expose()).toContain(
      'agent_endpoint_dial_failure_total{reason="unknown"} 1',
    )
  })

  test.each([
    ['a name without an address', 'ENOTFOUND', 'dial tcp: lookup no.such: no such host'],
    [
      'a resolver in trouble',
      'EAI_AGAIN',
      'dial tcp: lookup no.such: Temporary failure in name resolution',
    ],
    ['no file descriptor', 'EMFILE', 'dial tcp: lookup no.such: socket: too many open files'],
  ])('%s', async (_name, code, refused) => {
    const { link } = linkTo({ resolve: unresolved(code) })
    expect(await link.ask('no.such:80')).toEqual({ refused })
  })

  test.each([
    ['nowhere', 'dial tcp: address nowhere: missing port in address'],
    ['::1:80', 'dial tcp: address ::1:80: invalid address'],
    ['127.0.0.1:0', 'dial tcp: address 127.0.0.1:0: invalid address'],
  ])('%s is no address', async (address, refused) => {
    expect(await linkTo().link.ask(address)).toEqual({ refused })
  })

  test('[TUN-U5] a target that does not answer in time', async () => {
    const resolve: Resolve = () => new Promise(() => {})
    const { link } = linkTo({ resolve, timeoutMs: 20 })
    expect(await link.ask('slow.test:80')).toEqual({
      refused: 'dial tcp slow.test:80: i/o timeout',
    })
    expect(metrics.registry.expose()).toContain('failure_total{reason="timeout"} 1')
  })

  test('a protocol that is not tcp', async () => {
    const answer = await linkTo().link.ask('127.0.0.1:1', { protocol: 'udp' })
    expect(answer).toEqual({ refused: 'dial udp: unknown network udp' })
  })
})

describe('[TUN-P5] a dial that was given up', () => {
  test('is not answered, and frees its place', async () => {
    const slots = new Slots(1)
    const giveUp = new AbortController()
    const { link } = linkTo({ resolve: () => new Promise(() => {}), slots })
    void link.ask('slow.test:80', { signal: giveUp.signal })
    giveUp.abort()
    await activity.idle(AbortSignal.timeout(2_000))
    await slots.take(AbortSignal.timeout(2_000))
    expect(metrics.registry.expose()).not.toContain('failure_total{')
  })

  test('leaves no connection to the target when that came late', async () => {
    const seen = new Promise<Socket>((resolve) => {
      void lab
        .serve((socket) => resolve(socket.resume()))
        .then((port) => {
          const { server } = linkTo()
          // The answer and the other end's word that it gave up have crossed.
          const accept = (): undefined => undefined
          const signal = new AbortController().signal
          server.serve({
            protocol: 'tcp',
            address: `127.0.0.1:${port}`,
            signal,
            accept,
            refuse: () => {},
          })
        })
    })
    const socket = await seen
    await once(socket, 'end')
    expect(socket.bytesRead).toBe(0)
  })

  test('is taken back while the target has not answered yet', async () => {
    const giveUp = new AbortController()
    const { link, server } = linkTo()
    let answers = 0
    // Nobody answers at an address that is set aside for documents.
    void link.ask('192.0.2.1:9', { signal: giveUp.signal }).then(() => answers++)
    giveUp.abort()
    await activity.idle(AbortSignal.timeout(2_000))
    expect([answers, server.openConnections, activity.count]).toEqual([0, 0, 0])
  })
})

test('[TUN-P7] more dials than allowed wait for a place, and for no longer than their time', async () => {
  let release: (addresses: readonly string[]) => void = () => {}
  const resolve: Resolve = (host) =>
    host === 'first.test'
      ? new Promise((found) => {
          release = found
        })
      : Promise.resolve(['127.0.0.1'])
  const port = await lab.echo()
  const { link } = linkTo({ slots: new Slots(1), resolve, timeoutMs: 300 })
  const first = link.ask(`first.test:${port}`)
  const second = link.ask(`second.test:${port}`)
  const third = linkTo({ slots: new Slots(1), resolve }).link.ask(`third.test:${port}`)
  accepted(await third).close() // places of its own: nobody is held up by others
  release(['127.0.0.1'])
  accepted(await first).close()
  accepted(await second).close()

  const full = new Slots(1)
  await full.take(AbortSignal.timeout(2_000))
  const late = await linkTo({ slots: full, timeoutMs: 20 }).link.ask(`127.0.0.1:${port}`)
  expect(late).toEqual({ refused: `dial tcp 127.0.0.1:${port}: i/o timeout` })
})

test('of several addresses the first that answers is taken', async () => {
  const port = await lab.serve((socket) => socket.end('here'))
  // 127.0.0.2 has nobody at this port: it refuses, and the next one is tried.
  const { link } = linkTo({ resolve: () => Promise.resolve(['127.0.0.2', '::1', '127.0.0.1']) })
  const channel = accepted(await link.ask(`many.test:${port}`))
  const reader = new ChannelReader(channel)
  await reader.finished
  expect(reader.text).toBe('here')
  channel.close()
})

test('a target that resets ends the channel with an error', async () => {
  const port = await lab.serve((socket) => {
    socket.once('data', () => socket.resetAndDestroy())
  })
  const { link } = linkTo()
  const channel = accepted(await link.ask(`127.0.0.1:${port}`))
  const reader = new ChannelReader(channel)
  channel.write(Buffer.from('x'))
  expect(await reader.closed).toBeInstanceOf(Error)
})

test('a target may speak first and after the end of the other direction', async () => {
  const port = await lab.serve((socket) => {
    socket.write('welcome ')
    void once(socket.resume(), 'end').then(() => socket.end('goodbye'))
  })
  const { link } = linkTo()
  const channel = accepted(await link.ask(`127.0.0.1:${port}`))
  const reader = new ChannelReader(channel)
  channel.finish()
  await reader.finished
  expect(reader.text).toBe('welcome goodbye')
  channel.close()
})
