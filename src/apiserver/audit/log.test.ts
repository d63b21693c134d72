import { mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Logger, redact, silentLogger, systemClock } from '../../core/index.ts'
import { type AuditLogOptions, type LogFile, openAuditLog } from './log.ts'
import { auditToStream } from './recorder.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'audit-'))
})
afterEach(() => rm(folder, { recursive: true }))

const path = () => join(folder, 'audit.log')
const openLog = (changes: Partial<AuditLogOptions> = {}) =>
  openAuditLog({
    path: path(),
    maxBytes: 2 ** 20,
    maxBackups: 2,
    clock: systemClock,
    log: silentLogger,
    ...changes,
  })
const linesOf = async (file: string) => (await readFile(file, 'utf8')).split('\n').slice(0, -1)

function listeningLogger(): { log: Logger; said: string[] } {
  const said: string[] = []
  const say = (_fields: object, message: string) => said.push(message)
  return { said, log: { ...silentLogger, error: say, warn: say } }
}

describe('an audit log', () => {
  test('has every line, in order, readable by nobody else', async () => {
    const log = await openLog({ flushBytes: 100 })
    for (let i = 0; i < 1_000; i++) log.write(redact(`line ${i}\n`))
    await log.close()
    expect(await linesOf(path())).toEqual(Array.from({ length: 1_000 }, (_none, i) => `line ${i}`))
    expect((await stat(path())).mode & 0o777).toBe(0o600)
  })

  test('goes on in the file of the last run, and takes it away from others', async () => {
    await writeFile(path(), 'before\n', { mode: 0o644 })
    const log = await openLog()
    log.write(redact('after\n'))
    await log.close()
    expect(await linesOf(path())).toEqual(['before', 'after'])
    expect((await stat(path())).mode & 0o777).toBe(0o600)
  })

  test('writes a lonely line soon, without being asked', async () => {
    const log = await openLog({ flushMs: 5 })
    log.write(redact('lonely\n'))
    await vi.waitFor(async () => expect(await linesOf(path())).toEqual(['lonely']))
    await log.close()
  })

  test('that cannot be opened says which and why', async () => {
    await expect(openLog({ path: join(folder, 'none', 'audit.log') })).rejects.toMatchObject({
      code: 'AUDIT_LOG_NOT_WRITABLE',
      message: expect.stringContaining('ENOENT'),
    })
  })

  test('can be closed twice, and counts what comes afterwards as lost', async () => {
    const log = await openLog()
    await log.close()
    await log.close()
    log.write(redact('late\n'))
    expect(log.dropped).toBe(1)
  })
})

describe('rotation by size [GND-R82]', () => {
  test('moves the file aside, keeps the newest, loses no line of those kept', async () => {
    const log = await openLog({ maxBytes: 100, flushBytes: 1 })
    for (let i = 10; i < 60; i++) {
      log.write(redact(`a line with ${i}\n`))
      await log.flush()
    }
    await log.close()
    const names = (await readdir(folder)).sort()
    expect(names).toHaveLength(3)
    expect(names[0]).toMatch(/^audit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log$/)
    const kept = await Promise.all(names.map((name) => linesOf(join(folder, name))))
    for (const lines of kept) expect(lines.join('\n').length).toBeLessThanOrEqual(100)
    const all = kept.flat()
    const last = Array.from(
      { length: all.length },
      (_none, i) => `a line with ${60 - all.length + i}`,
    )
    expect(all).toEqual(last)
  })

  test('holds for lines that were buffered while the disk was slow', async () => {
    const log = await openLog({ maxBytes: 100, maxBackups: 0 })
    for (let i = 0; i < 40; i++) log.write(redact(`line ${10 + i}\n`))
    await log.close()
    const files = await readdir(folder)
    const sizes = await Promise.all(
      files.map(async (name) => (await stat(join(folder, name))).size),
    )
    expect(sizes.toSorted((a, b) => a - b)).toEqual([32, 96, 96, 96])
  })

  test('leaves files alone that only look similar', async () => {
    const similar = ['audit-old.log', 'audit-2026-01-01.log', 'other-2026-01-01T00-00-00.000.log']
    for (const name of similar) await writeFile(join(folder, name), '')
    const log = await openLog({ maxBytes: 10, maxBackups: 1, flushBytes: 1 })
    for (let i = 0; i < 5; i++) {
      log.write(redact('0123456789\n'))
      await log.flush()
    }
    await log.close()
    expect(await readdir(folder)).toEqual(expect.arrayContaining(similar))
    expect(await readdir(folder)).toHaveLength(similar.length + 2)
  })

  test('that is impossible does not stop the log', async () => {
    const { log: logger, said } = listeningLogger()
    const clock = { ...systemClock, now: () => Number.NaN }
    const log = await openLog({ maxBytes: 10, flushBytes: 1, log: logger, clock })
    for (let i = 0; i < 3; i++) {
      log.write(redact('0123456789\n'))
      await log.flush()
    }
    await log.close()
    expect(await linesOf(path())).toHaveLength(3)
    expect(said).toContain('cannot rotate the audit log')
  })
})

describe('a full disk', () => {
  /** A real file on a disk that has room for `room` bytes more. */
  function fullDisk(room: number) {
    const disk = { room }
    const openFile = async (file: string): Promise<LogFile> => {
      const handle = await open(file, 'a', 0o600)
      const write: LogFile['write'] = async (...args: unknown[]) => {
        const [bytes, offset, length] = args
        if (!Buffer.isBuffer(bytes)) throw new TypeError('bytes expected')
        const fits = Math.min(Number(length), disk.room)
        if (fits === 0) throw Object.assign(new Error('disk full'), { code: 'ENOSPC' })
        disk.room -= fits
        return handle.write(bytes, Number(offset), fits) as never
      }
      return {
        write,
        truncate: (size) => handle.truncate(size),
        sync: () => handle.sync(),
        close: () => handle.close(),
        stat: handle.stat.bind(handle),
        chmod: (mode) => handle.chmod(mode),
      }
    }
    return { disk, openFile }
  }

  test('costs lines that are counted, leaves no half line, is told once, and ends', async () => {
    const { disk, openFile } = fullDisk(15)
    const { log: logger, said } = listeningLogger()
    const log = await openLog({ openFile, log: logger })
    for (const line of ['fits one\n', 'does not fit\n', 'nor this\n']) {
      log.write(redact(line))
      await log.flush()
    }
    expect(await linesOf(path())).toEqual(['fits one'])
    expect(log.dropped).toBe(2)
    disk.room = 1_000
    log.write(redact('fits again\n'))
    await log.close()
    expect(await linesOf(path())).toEqual(['fits one', 'fits again'])
    expect(said).toEqual([
      'cannot write the audit log, dropping events',
      'audit log is writable again',
    ])
  })

  test('or a stuck one takes no more memory than allowed', async () => {
    const log = await openLog({ maxBufferedBytes: 100, flushBytes: 1_000, flushMs: 60_000 })
    for (let i = 0; i < 50; i++) log.write(redact('0123456789\n'))
    expect(log.dropped).toBe(41)
    await log.close()
    expect(await linesOf(path())).toHaveLength(9)
  })
})

test('a stream that nobody reads takes no more than allowed', async () => {
  const stream = new PassThrough({ highWaterMark: 1 })
  const sink = auditToStream(stream, 20)
  for (let i = 0; i < 10; i++) sink.write(redact('0123456789'))
  expect(sink.dropped).toBeGreaterThan(5)
  stream.resume()
  await sink.close()
})
