import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { RequestBodies } from './request-bodies.ts'

const charged = new Map<string, number>()
const bodies = new RequestBodies({
  read: () => Promise.reject(new Error('not used')),
  cpu: { charge: (owner, ms) => void charged.set(owner, (charged.get(owner) ?? 0) + ms) },
})
beforeEach(() => charged.clear())
afterAll(() => bodies.close())

const by = { owner: 'jane', signal: new AbortController().signal }
const expected = { group: '', version: 'v1', kind: 'ConfigMap' }
const json = 'application/json'
const mapOf = (keys: number): object => ({
  kind: 'ConfigMap',
  apiVersion: 'v1',
  metadata: { name: 'a' },
  data: Object.fromEntries(Array.from({ length: keys }, (_, i) => [`k${i}`, String(i)])),
})
const decode = (body: string, contentType = json) =>
  bodies.decode(
    { type: 'object', bytes: Buffer.from(body), contentType, expected, fieldValidation: 'Warn' },
    by,
  )

describe('large and slow bodies are decoded in worker threads [SEC-R503]', () => {
  test('a small body needs no thread', async () => {
    expect((await decode(JSON.stringify(mapOf(3)))).object).toEqual(mapOf(3))
    expect(bodies.workers).toBe(0)
  })

  test.each([
    ['JSON', json, JSON.stringify(mapOf(5_000))],
    ['YAML', 'application/yaml', JSON.stringify(mapOf(1_000))],
  ])('a large body of %s has the same outcome as a small one', async (_name, type, body) => {
    expect(await decode(body, type)).toEqual({ object: JSON.parse(body), warnings: [] })
    expect(bodies.workers).toBe(1)
    expect(charged.get('jane')).toBeGreaterThan(0)
  })

  test('warnings and errors come back as they are', async () => {
    const { warnings } = await decode(JSON.stringify({ ...mapOf(3_000), x: 1 }))
    expect(warnings).toEqual(['unknown field "x"'])
    const wrong = JSON.stringify({ ...mapOf(3_000), metadata: 1 })
    await expect(decode(wrong)).rejects.toMatchObject({
      reason: 'BadRequest',
      message: expect.stringContaining('cannot unmarshal number'),
    })
  })

  test.each([
    ['JSON', json, JSON.stringify(mapOf(30_000))],
    ['YAML', 'application/yaml', JSON.stringify(mapOf(6_000))],
    ['structs', json, `{"metadata":{"ownerReferences":[${'{},'.repeat(20_000)}{}]}}`],
  ])('a body of %s beyond all limits is a 413 [SEC-R502]', async (_name, type, body) => {
    await expect(decode(body, type)).rejects.toMatchObject({ reason: 'RequestEntityTooLarge' })
  })

  test.each([
    ['small', 3, 'k1'],
    ['large', 5_000, 'k1'],
  ])('a patch of a %s object has the same outcome in any thread', async (_name, keys, key) => {
    const stored = mapOf(keys) as never
    const bytes = Buffer.from(JSON.stringify([{ op: 'remove', path: `/data/${key}` }]))
    const patch = bodies.openPatch('json', bytes, 'Warn')
    const { object } = await bodies.patch(patch, stored, expected, by)
    const { [key]: _, ...data } = (mapOf(keys) as { data: Record<string, string> }).data
    expect(object).toEqual({ ...mapOf(keys), data })
  })

  test('a large patch that does not fit is the same 422', async () => {
    const operations = Array.from({ length: 3_000 }, () => ({ op: 'remove', path: '/data/x' }))
    const patch = bodies.openPatch('json', Buffer.from(JSON.stringify(operations)), 'Warn')
    await expect(bodies.patch(patch, mapOf(1) as never, expected, by)).rejects.toMatchObject({
      reason: 'Invalid',
    })
  })
})
