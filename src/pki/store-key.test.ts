import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { umask } from 'node:process'
import { beforeEach, expect, test } from 'vitest'
import { openStoreKey } from './store-key.ts'

let directory: string
let path: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-store-key-'))
  path = join(directory, 'store-key')
  return () => rm(directory, { recursive: true })
})

test('is made once, for its owner only, whatever the umask [SEC-R905]', async () => {
  const before = umask(0)
  try {
    const key = await openStoreKey(path, { mayCreate: true })
    expect(key).toHaveLength(32)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await openStoreKey(path, { mayCreate: false })).toEqual(key)
  } finally {
    umask(before)
  }
})

test('of replicas that make it at once all get the same [SEC-R905]', async () => {
  const keys = await Promise.all(
    Array.from({ length: 8 }, () => openStoreKey(path, { mayCreate: true })),
  )
  expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(1)
  expect(await readdir(directory)).toEqual(['store-key'])
})

test('that is missing while values need it is not replaced [SEC-R905]', async () => {
  await expect(openStoreKey(path, { mayCreate: false })).rejects.toMatchObject({
    code: 'STORE_KEY_MISSING',
    hint: expect.stringContaining('restore it from a backup'),
  })
  expect(await readdir(directory)).toEqual([])
})

test.each([
  ['nothing', ''],
  ['too little', Buffer.alloc(31).toString('base64')],
  ['too much', Buffer.alloc(33).toString('base64')],
  ['no base64', 'x'.repeat(43)],
])('that holds %s is refused and stays as it is [SEC-R905]', async (_, text) => {
  await writeFile(path, text, { mode: 0o600 })
  await expect(openStoreKey(path, { mayCreate: true })).rejects.toMatchObject({
    code: 'PKI_INVALID',
  })
  expect(await readFile(path, 'utf8')).toBe(text)
})
