import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { freshDirectory } from '../exec/plugin-lab.suite.ts'
import { type CredentialCacheOptions, openCredentialCache } from './credential-cache.ts'

const now = Date.UTC(2026, 0, 1)
const clock = { now: () => now, monotonic: () => performance.now() }
const open = (directory: string, options: CredentialCacheOptions = {}) =>
  openCredentialCache(directory, { clock, ...options })
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)
const onlyFile = (directory: string): string => {
  const names = readdirSync(directory)
  expect(names).toHaveLength(1)
  return join(directory, names[0] ?? '')
}

describe('a cache', () => {
  test('keeps a credential in a private file of a private directory [CRED-A2, CRED-S15]', async () => {
    const directory = join(freshDirectory(), 'a', 'b')
    const cache = await open(directory)
    const credential = { token: 'abc', expiresAt: now + 60_000 }
    await cache.getOrObtain('user@server', () => Promise.resolve(credential))
    expect(await (await open(directory)).get('user@server')).toEqual(credential)
    expect(modeOf(directory)).toBe('700')
    const file = onlyFile(directory)
    expect(modeOf(file)).toBe('600')
    expect(file).not.toContain('user')
    expect(readFileSync(file, 'utf8')).not.toContain('user')
  })

  test('hands out certificates, and each key its own', async () => {
    const cache = await open(freshDirectory())
    const pair = { clientCertificateData: 'cert', clientKeyData: 'key' }
    await cache.getOrObtain('a', () => Promise.resolve(pair))
    expect(await cache.get('a')).toEqual(pair)
    expect(await cache.get('b')).toBeUndefined()
  })

  test.each([
    ['ends in a minute', 60_000, true],
    ['ends at once', 1_000, false],
    ['has ended', -1, false],
  ])('what %s is handed out: %s', async (_name, leftMs, isKept) => {
    const cache = await open(freshDirectory())
    const obtain = vi.fn(() => Promise.resolve({ token: 'a', expiresAt: now + leftMs }))
    await cache.getOrObtain('key', obtain)
    await cache.getOrObtain('key', obtain)
    expect(obtain).toHaveBeenCalledTimes(isKept ? 1 : 2)
  })

  test('forgets what was refused', async () => {
    const cache = await open(freshDirectory())
    await cache.getOrObtain('key', () => Promise.resolve({ token: 'a' }))
    await cache.forget('key')
    expect(await cache.get('key')).toBeUndefined()
  })

  test('does not keep a failure, and lets the next one try', async () => {
    const cache = await open(freshDirectory())
    const failed = cache.getOrObtain('key', () => Promise.reject(new Error('no luck')))
    await expect(failed).rejects.toThrow('no luck')
    const credential = await cache.getOrObtain('key', () => Promise.resolve({ token: 'a' }))
    expect(credential).toEqual({ token: 'a' })
  })

  test.each(['', '{', '[]', '{}', '{"clientKeyData":"key"}', '{"token":7}'])(
    'a file with %j in it is as good as none',
    async (text) => {
      const directory = freshDirectory()
      const cache = await open(directory)
      await cache.getOrObtain('key', () => Promise.resolve({ token: 'a' }))
      writeFileSync(onlyFile(directory), text)
      expect(await cache.get('key')).toBeUndefined()
    },
  )
})

describe('what others can look into is not used, and says so', () => {
  const obtain = () => Promise.resolve({ token: 'fresh' })

  test('a directory [CRED-A2, CRED-S15]', async () => {
    const directory = freshDirectory()
    chmodSync(directory, 0o750)
    const onSkip = vi.fn()
    const cache = await open(directory, { onSkip })
    expect(cache.unusable).toContain('mode 750')
    expect(onSkip).toHaveBeenCalledWith(cache.unusable)
    expect(await cache.getOrObtain('key', obtain)).toEqual({ token: 'fresh' })
    expect(await cache.get('key')).toBeUndefined()
    expect(readdirSync(directory)).toEqual([])
  })

  test('a link in place of the directory [CRED-S15]', async () => {
    const parent = freshDirectory()
    mkdirSync(join(parent, 'real'), { mode: 0o700 })
    symlinkSync(join(parent, 'real'), join(parent, 'link'))
    expect((await open(join(parent, 'link'))).unusable).toContain('not a directory itself')
  })

  test('a file, or a link in its place [CRED-A2, CRED-S15]', async () => {
    const directory = freshDirectory()
    const onSkip = vi.fn()
    const cache = await open(directory, { onSkip })
    await cache.getOrObtain('key', () => Promise.resolve({ token: 'old' }))
    const file = onlyFile(directory)
    chmodSync(file, 0o640)
    expect(await cache.get('key')).toBeUndefined()
    expect(onSkip).toHaveBeenLastCalledWith(expect.stringContaining('mode 640'))
    chmodSync(file, 0o600)
    expect(await cache.get('key')).toEqual({ token: 'old' })
    renameSync(file, `${file}.real`)
    symlinkSync(`${file}.real`, file)
    expect(await cache.get('key')).toBeUndefined()
    expect(onSkip).toHaveBeenLastCalledWith(expect.stringContaining('ELOOP'))
    await cache.getOrObtain('key', obtain)
    expect(await cache.get('key')).toEqual({ token: 'fresh' })
    expect(readFileSync(`${file}.real`, 'utf8')).toContain('old')
  })
})

describe('of several who need a credential', () => {
  test('one obtains it and the others wait [CRED-A2]', async () => {
    const directory = freshDirectory()
    const obtain = vi.fn(
      () => new Promise<{ token: string }>((done) => setTimeout(() => done({ token: 'one' }), 100)),
    )
    const caches = await Promise.all(Array.from({ length: 8 }, () => open(directory)))
    const all = await Promise.all(caches.map((cache) => cache.getOrObtain('key', obtain)))
    expect(new Set(all.map(({ token }) => token))).toEqual(new Set(['one']))
    expect(obtain).toHaveBeenCalledTimes(1)
    onlyFile(directory)
  })

  test('a lock whose owner has died is taken over by one of them [CRED-A2]', async () => {
    const directory = freshDirectory()
    const cache = await open(directory)
    await cache.getOrObtain('key', () => Promise.resolve({ token: 'old', expiresAt: now }))
    writeFileSync(`${onlyFile(directory)}.lock`, 'of a dead process')
    const obtain = vi.fn(() => Promise.resolve({ token: 'new' }))
    const caches = await Promise.all(
      Array.from({ length: 4 }, () => open(directory, { staleMs: 200 })),
    )
    const all = await Promise.all(caches.map((each) => each.getOrObtain('key', obtain)))
    expect(all).toEqual(Array.from({ length: 4 }, () => ({ token: 'new' })))
    expect(obtain).toHaveBeenCalledTimes(1)
    onlyFile(directory)
  })

  test('an owner that lives is waited for, but not for ever [CRED-A2]', async () => {
    const directory = freshDirectory()
    const [slow, quick] = [
      await open(directory, { staleMs: 500 }),
      await open(directory, { staleMs: 500, waitMs: 1_500 }),
    ]
    let finish: (credential: { token: string }) => void = () => {}
    const slowly = slow.getOrObtain('key', () => new Promise((done) => (finish = done)))
    await vi.waitFor(() => onlyFile(directory))
    const started = performance.now()
    const own = await quick.getOrObtain('key', () => Promise.resolve({ token: 'own' }))
    expect(own).toEqual({ token: 'own' })
    expect(performance.now() - started).toBeGreaterThan(1_400)
    finish({ token: 'late' })
    expect(await slowly).toEqual({ token: 'late' })
    onlyFile(directory)
  })
})
