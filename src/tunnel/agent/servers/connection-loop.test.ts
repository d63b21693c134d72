import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../core/index.ts'
import { LogLines } from '../agent-lab.suite.ts'
import { FakeLink } from '../fake-link.suite.ts'
import type { ConnectedServer } from './connect-server.ts'
import { ConnectionLoop, type ConnectionLoopParts } from './connection-loop.ts'
import type { ServerAddress } from './server-addresses.ts'
import { ServerLinks } from './server-links.ts'

/** What becomes of a connect; one that never answers ends with the signal. */
type Answer = 'linked' | 'refused' | 'silence'

/** A loop on addresses that behave as told. */
class LoopLab {
  readonly lines = new LogLines()
  readonly links = new ServerLinks({
    log: this.lines.log,
    clock: systemClock,
    dial: () => {},
    broke: () => {},
  })
  readonly opened: FakeLink[] = []
  readonly tried: string[] = []
  readonly answers = new Map<string, Answer>()
  readonly #stop = new AbortController()
  #waiting: (() => void)[] = []
  #running: Promise<void> | undefined

  run(parts: Partial<ConnectionLoopParts> = {}): Promise<void> {
    const loop = new ConnectionLoop({
      links: this.links,
      addresses: () => Promise.resolve([...this.answers.keys()].map((host) => ({ host, port: 1 }))),
      connect: (address, signal) => this.#connect(address, signal),
      reached: () => {},
      serverCount: () => 1,
      syncIntervalMs: 1,
      syncIntervalCapMs: 3_600_000,
      syncForever: false,
      clock: systemClock,
      log: this.lines.log,
      random: () => 0,
      ...parts,
    })
    this.#running = loop.run(this.#stop.signal)
    return this.#running
  }

  /** Resolves when `isSo`, which is asked after every connect. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  stop(): void {
    this.#stop.abort()
  }

  async close(): Promise<void> {
    this.stop()
    await this.#running
    await this.links.close()
  }

  async #connect({ host }: ServerAddress, signal: AbortSignal): Promise<ConnectedServer> {
    this.tried.push(host)
    setImmediate(() => {
      for (const tell of this.#waiting.splice(0)) tell()
    })
    const answer = this.answers.get(host)
    if (answer === 'silence')
      await new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new Error('given up'))),
      )
    if (answer === 'refused') throw new Error(`${host} refuses`)
    const link = new FakeLink()
    this.opened.push(link)
    return { serverId: host, link }
  }
}

let lab: LoopLab
beforeEach(() => {
  lab = new LoopLab()
})
afterEach(() => lab.close())

test('[TUN-W18] names are not resolved all the time while every server is linked', async () => {
  let resolved = 0
  let rounds = 0
  lab.answers.set('a', 'linked')
  await lab.run({
    addresses: () => {
      resolved++
      return Promise.resolve([{ host: 'a', port: 1 }])
    },
    random: () => {
      rounds++
      if (rounds === 20) lab.opened[0]?.close()
      if (rounds === 30) lab.stop()
      return 0
    },
  })
  expect(resolved).toBe(2) // at the start, and when the link was lost
})

describe('[TUN-W29] an address that is away', () => {
  test('and never answers holds up no other, neither at the start nor when a link is lost', async () => {
    lab.answers.set('hole', 'silence').set('good', 'linked')
    void lab.run()
    await lab.until(() => lab.links.has('good'))
    lab.opened[0]?.close()
    await lab.until(() => lab.opened.length === 2)
    expect(lab.tried).toEqual(['hole', 'good', 'good'])
  })

  test('has pauses of its own: a link that is lost elsewhere is opened again at once', async () => {
    lab.answers.set('bad', 'refused').set('good', 'linked')
    // Time stands still, so that the pause after a failure never ends.
    void lab.run({ clock: { now: () => 0, monotonic: () => 0 } })
    await lab.until(() => lab.links.has('good'))
    lab.opened[0]?.close()
    await lab.until(() => lab.opened.length === 2)
    expect(lab.tried).toEqual(['bad', 'good', 'good'])
  })

  test('is told once while another one is linked', async () => {
    const told = () =>
      lab.lines.lines.flatMap(({ level, fields }) =>
        level === 'warn' ? String((fields as { err?: unknown }).err) : [],
      )
    lab.answers.set('good', 'linked').set('bad', 'refused')
    void lab.run({ syncIntervalCapMs: 1 })
    await lab.until(() => lab.tried.filter((host) => host === 'bad').length > 3)
    expect(told()).toEqual(['Error: bad refuses'])
  })

  test('is told each time while none is linked', async () => {
    lab.answers.set('bad', 'refused')
    void lab.run({ syncIntervalCapMs: 1 })
    await lab.until(() => lab.tried.length > 3)
    expect(lab.lines.lines.filter(({ level }) => level === 'warn').length).toBeGreaterThan(2)
  })
})
