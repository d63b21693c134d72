import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { silentLogger } from '../core/index.ts'
import { openMemoryStore } from './local-store.ts'
import { hasSealedValues, SealedStore, sealedPrefix } from './sealed-store.ts'

const { signal } = new AbortController()
const storeKey = randomBytes(32)
const secret = Buffer.from('a private key')

async function sealed() {
  const store = openMemoryStore()
  const values = new SealedStore(store, storeKey, silentLogger)
  await values.change('a', () => secret, signal)
  await values.change('b', () => Buffer.from('another'), signal)
  const record = store.get(`${sealedPrefix}a`)
  if (!record) throw new Error('nothing was stored')
  return { store, values, record }
}

test('a value is encrypted in the store, each time with another nonce [SEC-R903]', async () => {
  const { store, values, record } = await sealed()
  expect(record.value.includes(secret)).toBe(false)
  await values.change('a', (present) => present, signal)
  const again = store.get(record.key)
  expect(again?.value.equals(record.value)).toBe(false)
  expect((await values.get('a', signal))?.value).toEqual(secret)
  expect([hasSealedValues(store), hasSealedValues(openMemoryStore())]).toEqual([true, false])
})

test('no changed byte and no value of another name is accepted [SEC-R903]', async () => {
  const { store, values, record } = await sealed()
  let { revision } = record
  const replace = async (value: Buffer) => {
    revision = (await store.update(record.key, value, revision)).revision
  }
  for (let at = 0; at < record.value.length; at++) {
    const changed = Buffer.from(record.value)
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
    await replace(changed)
    await expect(values.get('a', signal)).rejects.toThrow(/not a sealed|another key|authentication/)
    expect(() => values.verify()).toThrow(/not a sealed|another key|authentication/)
  }
  await replace(record.value.subarray(0, 39))
  await expect(values.get('a', signal)).rejects.toThrow('not a sealed value')
  await replace(store.get(`${sealedPrefix}b`)?.value ?? Buffer.alloc(0))
  await expect(values.get('a', signal)).rejects.toThrow('fails its authentication')
})

test('another store key is refused by name [SEC-R905]', async () => {
  const { store } = await sealed()
  const other = new SealedStore(store, randomBytes(32), silentLogger)
  expect(() => other.verify()).toThrow(
    expect.objectContaining({
      code: 'STORE_KEY_MISMATCH',
      message: expect.stringContaining('pki/store-key'),
    }),
  )
})

test('of several writers each sees what the others wrote', async () => {
  const { store } = await sealed()
  const writers = Array.from({ length: 5 }, () => new SealedStore(store, storeKey, silentLogger))
  await Promise.all(
    writers.map((values) =>
      values.change('count', (present) => Buffer.from(`${String(present ?? '')}x`), signal),
    ),
  )
  expect((await writers[0]?.get('count', signal))?.value.toString()).toBe('xxxxx')
})

test('a watcher gets each change of its name until it ends, and survives a damaged value', async () => {
  const { store, values, record } = await sealed()
  const ended = new AbortController()
  const seen: string[] = []
  values.watch('a', ({ value }) => seen.push(value.toString()), ended.signal)
  await values.change('b', () => Buffer.from('not watched'), signal)
  await values.change('ab', () => Buffer.from('a longer name'), signal)
  const { version } = (await values.get('a', signal)) ?? { version: 0 }
  await store.update(record.key, Buffer.from('damaged'), version)
  await store.delete(record.key, store.revision)
  await values.change('a', () => Buffer.from('new'), signal)
  ended.abort()
  await values.change('a', () => Buffer.from('later'), signal)
  expect(seen).toEqual(['new'])
})
