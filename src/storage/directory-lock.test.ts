import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { CommandFailed } from '../core/index.ts'
import { acquireDirectoryLock } from './directory-lock.ts'

let directory: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-lock-'))
  return () => rm(directory, { recursive: true })
})

/** No process has an id as large as this. */
const deadPid = 2 ** 30
const isRunning = (pid: number): boolean => pid !== deadPid
const me = { pid: process.pid, isRunning }

test('a second owner is refused with a sentence that names the first [GND-R4]', async () => {
  await acquireDirectoryLock(directory, me)
  const attempt = acquireDirectoryLock(directory, { pid: process.ppid, isRunning })
  await expect(attempt).rejects.toThrow(CommandFailed)
  await expect(attempt).rejects.toMatchObject({ code: 'DATA_DIR_IN_USE' })
  await expect(attempt).rejects.toThrow(`${directory} is in use by process ${process.pid}`)
})

test('a released lock can be taken again, and leaves no file behind', async () => {
  const lock = await acquireDirectoryLock(directory, me)
  await lock.release()
  await lock.release()
  expect(await readdir(directory)).toEqual([])
  await acquireDirectoryLock(directory, me)
  expect(await readdir(directory)).toEqual(['lock'])
})

test.each([
  ['of a process that has ended', JSON.stringify({ pid: deadPid, startedAt: 'x/1' })],
  [
    'of an earlier process with the same id',
    JSON.stringify({ pid: process.pid, startedAt: 'x/1' }),
  ],
  ['that is not readable', 'garbage'],
])('a lock %s is taken over', async (_, content) => {
  await writeFile(join(directory, 'lock'), content)
  await acquireDirectoryLock(directory, me)
  expect(await readFile(join(directory, 'lock'), 'utf8')).toContain(`"pid":${process.pid}`)
  expect(await readdir(directory)).toEqual(['lock'])
})

test('a lock without a start time is believed as long as its process runs', async () => {
  const content = JSON.stringify({ pid: process.pid, startedAt: '' })
  await writeFile(join(directory, 'lock'), content)
  await expect(acquireDirectoryLock(directory, me)).rejects.toThrow('is in use')
})

test('of many that want a stale lock exactly one gets it', async () => {
  for (let round = 0; round < 30; round++) {
    await writeFile(join(directory, 'lock'), JSON.stringify({ pid: deadPid, startedAt: '' }))
    const attempts = Array.from({ length: 8 }, () => acquireDirectoryLock(directory, me))
    const outcomes = await Promise.allSettled(attempts)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  }
})

test('the claim of one that died while taking over a stale lock does not block others', async () => {
  const stale = JSON.stringify({ pid: deadPid, startedAt: '' })
  await writeFile(join(directory, 'lock'), stale)
  const claim = `lock.${createHash('sha256').update(stale).digest('hex')}`
  await writeFile(join(directory, claim), JSON.stringify({ pid: deadPid, startedAt: '' }))
  await acquireDirectoryLock(directory, me)
  expect(await readdir(directory)).toEqual(['lock'])
})

test('a lock that was taken over meanwhile is not released by its old owner', async () => {
  const lock = await acquireDirectoryLock(directory, me)
  await writeFile(join(directory, 'lock'), 'of another')
  await lock.release()
  expect(await readFile(join(directory, 'lock'), 'utf8')).toBe('of another')
})
