import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { type Clock, type Logger, silentLogger, systemClock } from '../../core/index.ts'
import { AgentRefused, AgentUnjudged } from './agent-registry.ts'
import { TokenWatch } from './agent-tokens.ts'

const good = (): Promise<void> => Promise.resolve()
const refuse = (): Promise<void> =>
  Promise.reject(new AgentRefused('no', { detail: 'the token is not authentic' }))
const silent = (): Promise<void> =>
  Promise.reject(new AgentUnjudged('no', { detail: 'the token could not be reviewed: no cluster' }))

const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** A connection whose end is told, with the reason. */
function connection(): { readonly socket: Socket; readonly end: Promise<unknown> } {
  const socket = new Socket()
  sockets.push(socket)
  const end = new Promise((resolve) => {
    socket.once('error', resolve)
    socket.once('close', resolve)
  })
  return { socket, end }
}

interface WatchOptions {
  readonly everyMs?: number
  readonly cutsExpired?: boolean
  readonly clock?: Clock
}

/** Watches by answers of which the last is given for ever. */
function watching(
  answers: (() => Promise<void>)[],
  { everyMs = 50, cutsExpired = false, clock = systemClock }: WatchOptions = {},
) {
  const asked: string[] = []
  const said: string[] = []
  const warn = (fields: object, message: string): void =>
    void said.push(`${message} ${JSON.stringify(fields)}`)
  const log: Logger = { ...silentLogger, warn }
  const check = ({ authorization = [] }: Readonly<Record<string, readonly string[]>>) => {
    asked.push(authorization.join())
    const answer = answers.length > 1 ? answers.shift() : answers[0]
    return answer?.() ?? Promise.resolve()
  }
  return { watch: new TokenWatch({ check, everyMs, cutsExpired, clock, log }), asked, said }
}

const bearer = (token: string) => ({ authorization: [`Bearer ${token}`] })
const tokenUntil = (epochMs: number): string =>
  `h.${Buffer.from(JSON.stringify({ exp: epochMs / 1_000 })).toString('base64url')}.s`

test('[TUN-F21] a token that is no longer good ends its connection, and the log says why', async () => {
  const { watch, asked, said } = watching([good, good, refuse])
  const { socket, end } = connection()
  watch.follow(socket, bearer('t'))
  expect(await end).toBeInstanceOf(AgentRefused)
  expect(asked).toEqual(['Bearer t', 'Bearer t', 'Bearer t'])
  expect(said).toEqual([expect.stringContaining('the token is not authentic')])
  expect(said.join()).not.toContain('Bearer')
})

test('[TUN-F21] a token is reviewed at its end where that is wanted, however long the period is', async () => {
  const { watch } = watching([refuse], { everyMs: 3_600_000, cutsExpired: true })
  const { socket, end } = connection()
  watch.follow(socket, bearer(tokenUntil(Date.now() + 100)))
  expect(await end).toBeInstanceOf(AgentRefused)
})

test('[TUN-F21] elsewhere nobody asks about a token that ends, and its agent stays', async () => {
  const { watch, asked } = watching([refuse], { everyMs: 10 })
  const { socket } = connection()
  watch.follow(socket, bearer(tokenUntil(Date.now() + 59_000)))
  const { socket: another, end } = connection()
  watch.follow(another, bearer(tokenUntil(Date.now() + 3_600_000)))
  expect(await end).toBeInstanceOf(AgentRefused)
  expect([asked.length, socket.destroyed]).toEqual([1, false])
})

test('[TUN-F21] a token that ends while it is reviewed costs nobody his connection', async () => {
  let now = 0
  const clock = { now: () => now, monotonic: () => performance.now() }
  const late = (): Promise<void> => {
    now = 3_600_000
    return refuse()
  }
  const { watch, asked } = watching([late], { everyMs: 10, clock })
  const { socket } = connection()
  watch.follow(socket, bearer(tokenUntil(3_600_000)))
  await vi.waitFor(() => expect(asked).toHaveLength(1), 5_000)
  await delay(30)
  expect([asked.length, socket.destroyed]).toEqual([1, false])
})

test('[TUN-F21] not before its period, if its end is far or unknown', async () => {
  const { watch, asked } = watching([refuse], { everyMs: 3_600_000 })
  const { socket } = connection()
  for (const token of ['opaque', 'h.!.s', tokenUntil(Date.now() + 86_400_000)]) {
    watch.follow(socket, bearer(token))
    await delay(10)
  }
  expect([asked, socket.destroyed]).toEqual([[], false])
})

test('[TUN-F21] a review that cannot be made keeps the connection for three periods, and the log says so', async () => {
  const { watch, said } = watching([silent])
  const { socket, end } = connection()
  const began = performance.now()
  watch.follow(socket, bearer('t'))
  expect(await end).toBeInstanceOf(AgentRefused)
  expect(performance.now() - began).toBeGreaterThanOrEqual(140)
  expect(said[0]).toContain('cannot be judged')
  expect(said.at(-1)).toContain('a connection is cut')
  expect(said.at(-1)).toContain('no cluster')
})

test('[TUN-F21] the time begins anew with every review that could be made', async () => {
  // Each review takes more than a period: two without an answer are borne, three are not.
  let now = 0
  const clock = { now: Date.now, monotonic: () => now }
  const late = (answer: () => Promise<void>) => (): Promise<void> => {
    now += 60
    return answer()
  }
  const answers = [silent, silent, good, silent, silent, good].map(late)
  const { watch, asked, said } = watching(answers, { clock })
  const { socket } = connection()
  watch.follow(socket, bearer('t'))
  await vi.waitFor(() => expect(asked.length).toBeGreaterThan(6), 5_000)
  expect([socket.destroyed, said.length]).toEqual([false, 4])
})

test('[TUN-F21] the newest token of a connection counts', async () => {
  const { watch, asked } = watching([good])
  const { socket } = connection()
  watch.follow(socket, bearer('old'))
  watch.follow(socket, bearer('new'))
  await vi.waitFor(() => expect(asked.length).toBeGreaterThan(2), 5_000)
  expect(new Set(asked)).toEqual(new Set(['Bearer new']))
})

test('[TUN-F21] nobody is asked about a connection that has gone', async () => {
  const { watch, asked } = watching([good], { everyMs: 10 })
  const { socket, end } = connection()
  watch.follow(socket, bearer('t'))
  socket.destroy()
  await end
  watch.follow(socket, bearer('t'))
  await delay(30)
  expect(asked).toEqual([])
})
