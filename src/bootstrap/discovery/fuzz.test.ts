import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseCompactJws, TokenRefused } from '../../jose/index.ts'
import { isDiscoveryJwt, verifyDiscoveryJwt, verifySignature } from '../tokens/signature.ts'
import { parseJoinToken } from './addresses.ts'
import { labToken } from './discovery-lab.suite.ts'
import { readLocationDocument } from './document.ts'
import { DiscoveryFailed } from './errors.ts'
import { readClusterInfoMap } from './verify.ts'

const folder = new URL('../../../test/fixtures/discovery/', import.meta.url)

/** Every kept input of a kind, by its name. */
const corpus = (kind: string): [string, Buffer][] =>
  readdirSync(new URL(`${kind}/`, folder)).map((name) => [
    name,
    readFileSync(new URL(`${kind}/${name}`, folder)),
  ])

/** A kept input with some of its bytes changed, left out, doubled or added. */
const mutated = (kind: string): fc.Arbitrary<Buffer> => {
  const change = fc.record({
    at: fc.nat(),
    length: fc.nat({ max: 8 }),
    bytes: fc.uint8Array({ maxLength: 8 }),
    doubles: fc.boolean(),
  })
  return fc
    .tuple(fc.constantFrom(...corpus(kind)), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([[, bytes], changes]) =>
      changes.reduce((text, { at, length, bytes: added, doubles }) => {
        const start = at % (text.length + 1)
        const end = doubles ? start : start + length
        const again = doubles ? text.subarray(start, start + length) : Buffer.alloc(0)
        return Buffer.concat([text.subarray(0, start), again, added, text.subarray(end)])
      }, bytes),
    )
}

const body = Buffer.from('{"kind":"ConfigMap","apiVersion":"v1"}')
const nowMs = 1_500_000_010_000

/** What each parser makes of an input: accepted, or refused in its own way; anything else is thrown. */
const parsers: Readonly<Record<string, (input: Buffer) => Promise<boolean> | boolean>> = {
  jwt: (input) => {
    try {
      const jws = parseCompactJws(input.toString('latin1'))
      if (!isDiscoveryJwt(jws)) return false
      verifyDiscoveryJwt(jws, labToken, { nowMs, clusterId: undefined })
      return true
    } catch (error) {
      if (error instanceof TokenRefused) return false
      throw error
    }
  },
  jws: (input) => {
    try {
      verifySignature(input.toString('latin1'), body, labToken)
      return true
    } catch (error) {
      if (error instanceof TokenRefused) return false
      throw error
    }
  },
  'cluster-info': (input) => readClusterInfoMap(input, labToken.id) !== undefined,
  kubeconfig: async (input) => {
    try {
      await readLocationDocument(input.toString('utf8'), { where: 'the input' })
      return true
    } catch (error) {
      if (error instanceof DiscoveryFailed && error.reason === 'document-invalid') return false
      throw error
    }
  },
}

/** Kept inputs that are right, or harmless. */
const accepted: Readonly<Record<string, readonly string[]>> = {
  jwt: ['good'],
  jws: ['good'],
  'cluster-info': ['good', 'numbers'],
  kubeconfig: [
    'good',
    'json',
    'constructor',
    'directive',
    'long-line',
    'merge-key',
    'number-keys',
    'prototype',
  ],
}

describe.each(Object.keys(parsers))('[DISC-T10] %s', (kind) => {
  const parse = parsers[kind] ?? (() => false)

  test('every kept input is refused, except those that are right', async () => {
    const outcomes = await Promise.all(
      corpus(kind).map(async ([name, input]) => [name, await parse(input)] as const),
    )
    const right = outcomes.filter(([, ok]) => ok).map(([name]) => name)
    expect(right.toSorted()).toEqual((accepted[kind] ?? []).toSorted())
  })

  test('mutations of them are accepted or refused, and nothing else happens', async () => {
    await fc.assert(
      fc.asyncProperty(mutated(kind), async (input) => {
        expect(typeof (await parse(input))).toBe('boolean')
      }),
      { numRuns: kind === 'kubeconfig' ? 300 : 1_000 },
    )
  }, 60_000)
})

test.each(['jwt', 'jws'])(
  '[DISC-T10] no %s but the very one that was signed is right',
  async (kind) => {
    const good = readFileSync(new URL(`${kind}/good`, folder))
    await fc.assert(
      fc.asyncProperty(mutated(kind), async (input) => {
        fc.pre(!input.equals(good))
        expect(await parsers[kind]?.(input)).toBe(false)
      }),
      { numRuns: 1_000 },
    )
  },
  60_000,
)

/** Why a text is no token. */
function refusalOf(text: string): unknown {
  try {
    return parseJoinToken(text)
  } catch (error) {
    return error
  }
}

test('[DISC-T10] a text that is no token is refused without being repeated', () => {
  // Shorter ones may happen to be part of the sentence.
  const texts = fc.string({ unit: 'binary', minLength: 21, maxLength: 100 })
  fc.assert(
    fc.property(
      texts.filter((text) => !text.includes('@')),
      (text) => {
        const refusal = refusalOf(text)
        expect(refusal).toBeInstanceOf(DiscoveryFailed)
        expect(String(refusal)).not.toContain(text)
      },
    ),
  )
})
