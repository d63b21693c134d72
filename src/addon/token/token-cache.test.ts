import { describe, expect, test } from 'vitest'
import type { AddonIdentity } from './mint.ts'
import { AddonTokenCache } from './mint.ts'
import type { AddonSigner } from './signing-key.ts'
import { LabClock, labCa, labLeaf, labSigner } from './token-lab.suite.ts'

const ann: AddonIdentity = { user: 'ann', namespace: 'a', service: 'b' }

function lab(signer: AddonSigner, capacity = 100) {
  const clock = new LabClock()
  const asked: AddonIdentity[] = []
  let broken = false
  const mint = async (identity: AddonIdentity): Promise<string> => {
    asked.push(identity)
    if (broken) throw new Error('no key')
    return `token ${asked.length}`
  }
  const cache = new AddonTokenCache({ minter: { mint }, signer, clock, capacity })
  const setBroken = (now: boolean): void => {
    broken = now
  }
  return { cache, clock, asked, setBroken }
}

const key = async (): Promise<AddonSigner> => labSigner(await labLeaf(await labCa()))

describe('[ADDON-R16] a token', () => {
  test('is handed out again while more than a third of its life is left', async () => {
    const { cache, clock } = lab(await key())
    expect(await cache.mint(ann)).toBe('token 1')
    clock.turn(39_999)
    expect(await cache.mint(ann)).toBe('token 1')
    clock.turn(1)
    expect(await cache.mint(ann)).toBe('token 2')
  })

  test('is signed once for all who ask at the same time', async () => {
    const { cache, asked } = lab(await key())
    const tokens = await Promise.all(Array.from({ length: 50 }, () => cache.mint(ann)))
    expect(new Set(tokens).size).toBe(1)
    expect(asked).toHaveLength(1)
  })

  test.each<[what: string, other: AddonIdentity]>([
    ['user', { ...ann, user: 'bob' }],
    ['uid', { ...ann, uid: '1' }],
    ['groups', { ...ann, groups: ['g'] }],
    ['extra', { ...ann, extra: { a: ['b'] } }],
    ['namespace', { ...ann, namespace: 'c' }],
    ['service', { ...ann, service: 'c' }],
  ])('of another %s is another token', async (_what, other) => {
    const { cache } = lab(await key())
    expect(await cache.mint(ann)).not.toBe(await cache.mint(other))
  })

  test('of another key is another token', async () => {
    const rotating = { current: (await key()).current }
    const { cache } = lab(rotating)
    const before = await cache.mint(ann)
    rotating.current = (await key()).current
    expect(await cache.mint(ann)).not.toBe(before)
  })

  test('does not last when the clock is put back', async () => {
    const { cache, clock } = lab(await key())
    await cache.mint(ann)
    clock.turn(-3_600_000)
    expect(await cache.mint(ann)).toBe('token 2')
  })

  test('that is shared carries no audit id', async () => {
    const { cache, asked } = lab(await key())
    await cache.mint({ ...ann, auditId: 'x' })
    expect(asked).toEqual([ann])
  })
})

test('a failure is not kept', async () => {
  const { cache, setBroken } = lab(await key())
  setBroken(true)
  await expect(cache.mint(ann)).rejects.toThrow('no key')
  setBroken(false)
  expect(await cache.mint(ann)).toBe('token 2')
})

test('a flood of users does not fill the memory', async () => {
  const { cache } = lab(await key(), 100)
  for (let index = 0; index < 1000; index++) await cache.mint({ ...ann, user: `u${index}` })
  expect(cache.size).toBeLessThanOrEqual(100)
})
