import { mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Logger, silentLogger } from '../core/index.ts'
import { watchFiles } from './watch-files.ts'

let directory: string
let stop: AbortController
const at = (name: string) => join(directory, name)

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'watch-'))
  stop = new AbortController()
})
afterEach(async () => {
  stop.abort()
  await rm(directory, { recursive: true, force: true })
})

/** Counts calls, and waits for the next one. */
function callCounter() {
  let count = 0
  const waiting: ((word: 'called') => void)[] = []
  return {
    call: () => {
      count++
      for (const resolve of waiting.splice(0)) resolve('called')
    },
    count: () => count,
    next: () => new Promise<'called'>((resolve) => waiting.push(resolve)),
  }
}

const eventsOnly = { pollMs: 3_600_000, settleMs: 5 }
const pollingOnly = { pollMs: 5, settleMs: 3_600_000 }
const start = async (
  names: string[],
  onChange: () => void | Promise<void>,
  how: { pollMs: number; settleMs: number },
  log: Logger = silentLogger,
) => watchFiles(names.map(at), onChange, { log, signal: stop.signal, ...how })

describe.each([
  ['file events', eventsOnly],
  ['polling', pollingOnly],
])('by %s', (_how, how) => {
  test.each([
    ['is written in place', () => writeFile(at('a'), 'new')],
    [
      'is replaced by a rename',
      async () => {
        await writeFile(at('a.tmp'), 'old')
        await rename(at('a.tmp'), at('a'))
      },
    ],
    ['goes away', () => rm(at('a'))],
    ['is touched', () => utimes(at('a'), 1, 1)],
  ])('a file that %s is noticed', async (_name, change) => {
    await writeFile(at('a'), 'old')
    const calls = callCounter()
    await start(['a'], calls.call, how)
    const noticed = calls.next()
    await change()
    await expect(noticed).resolves.toBe('called')
  })

  test('a file that was not there is noticed when it comes', async () => {
    const calls = callCounter()
    await start(['a'], calls.call, how)
    const noticed = calls.next()
    await writeFile(at('a'), 'x')
    await expect(noticed).resolves.toBe('called')
  })

  test('the swap of a link to another directory, as Kubernetes does it, is noticed', async () => {
    for (const version of ['..1', '..2']) {
      await mkdir(at(version))
      await writeFile(join(at(version), 'tls.crt'), version)
    }
    await symlink('..1', at('..data'))
    await symlink('..data/tls.crt', at('tls.crt'))
    const calls = callCounter()
    await start(['tls.crt'], calls.call, how)
    const noticed = calls.next()
    await symlink('..2', at('..data_tmp'))
    await rename(at('..data_tmp'), at('..data'))
    await expect(noticed).resolves.toBe('called')
  })
})

test('a directory that was not there, and is replaced later, is followed', async () => {
  const calls = callCounter()
  await start(['d/a'], calls.call, pollingOnly)
  for (const _round of [1, 2]) {
    const came = calls.next()
    await mkdir(at('d'))
    await writeFile(at('d/a'), 'x')
    await expect(came).resolves.toBe('called')
    const went = calls.next()
    await rm(at('d'), { recursive: true })
    await expect(went).resolves.toBe('called')
  }
})

test('other files of the directory do not matter', async () => {
  await writeFile(at('a'), 'x')
  const calls = callCounter()
  const others = callCounter()
  await start(['a'], calls.call, eventsOnly)
  await start(['b'], others.call, eventsOnly)
  const noticed = others.next()
  await writeFile(at('b'), 'x')
  await noticed
  expect(calls.count()).toBe(0)
})

test('a callback is never called while it is running, and a change meanwhile is not lost', async () => {
  await writeFile(at('a'), '0')
  const calls = callCounter()
  let running = 0
  let most = 0
  let proceed = () => {}
  const onChange = async () => {
    most = Math.max(most, ++running)
    const held = new Promise<void>((resolve) => (proceed = resolve))
    calls.call()
    await held
    running--
  }
  await start(['a'], onChange, pollingOnly)
  const first = calls.next()
  await writeFile(at('a'), 'first')
  await first
  await writeFile(at('a'), 'second')
  const second = calls.next()
  proceed()
  await second
  proceed()
  expect(most).toBe(1)
})

test('a callback that fails is logged and called again for the next change', async () => {
  await writeFile(at('a'), '0')
  const calls = callCounter()
  const errors: string[] = []
  const log = { ...silentLogger, error: (_fields: object, text: string) => errors.push(text) }
  const fail = () => {
    calls.call()
    throw new Error('no')
  }
  await start(['a'], fail, pollingOnly, log)
  for (const content of ['one', 'three']) {
    const noticed = calls.next()
    await writeFile(at('a'), content)
    await noticed
  }
  expect(errors[0]).toBe('handling a changed file failed')
})

test('after the end nothing is called', async () => {
  await writeFile(at('a'), 'x')
  const ended = callCounter()
  const other = callCounter()
  await start(['a'], ended.call, pollingOnly)
  stop.abort()
  stop = new AbortController()
  await start(['a'], other.call, pollingOnly)
  const noticed = other.next()
  await writeFile(at('a'), 'new')
  await noticed
  expect(ended.count()).toBe(0)
})
