import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import {
  type CostlyBody,
  type CostlyPatch,
  costlyBodies,
  costlyPatches,
  packed,
  schemaBodies,
} from '../../bench/inputs/corpus.ts'
import {
  inlineWorkLimits,
  maxWorkLimits,
  supportedMediaTypes,
} from '../../src/api/content/index.ts'
import { kindDefinitions } from '../../src/api/kinds/index.ts'
import { patchMediaTypes } from '../../src/api/patch/index.ts'
import { reviewResources } from '../../src/api/reviews/index.ts'
import { runBodyJob } from '../../src/api/serving/body-jobs.ts'
import { ApiError, Work, WorkExceeded, type WorkLimits } from '../../src/core/index.ts'
import { readBody } from '../../src/http/index.ts'

/** Per byte of the body: what the cheapest syntax can cause at the most. */
const maxPerByte = { tokens: 1, yamlTokens: 2, nodes: 3, operations: 2 } as const
/** For whatever a body costs apart from its bytes. */
const base = 64
const sizes = [1_000, 10_000, 200_000]

interface Outcome {
  readonly work: Work
  readonly result: 'accepted' | 'refused' | 'exceeded' | 'failed'
}

async function workOf(run: (work: Work) => Promise<unknown>, limits: WorkLimits): Promise<Outcome> {
  const work = new Work(limits)
  try {
    await run(work)
    return { work, result: 'accepted' }
  } catch (error) {
    if (error instanceof WorkExceeded) return { work, result: 'exceeded' }
    // Anything else would be a fault of ours.
    return { work, result: error instanceof ApiError ? 'refused' : 'failed' }
  }
}

const decode = (body: CostlyBody, bytes: Buffer) => (work: Work) =>
  runBodyJob(
    {
      type: 'object',
      bytes,
      contentType: body.encoding,
      expected: body.kind,
      fieldValidation: 'Warn',
    },
    work,
  )

const patch =
  ({ type, kind, original }: CostlyPatch, bytes: Buffer) =>
  (work: Work) =>
    runBodyJob(
      {
        type: 'patch',
        patchType: type,
        bytes,
        original: JSON.stringify(original),
        expected: kind,
        fieldValidation: 'Warn',
      },
      work,
    )

/** Counts that are out of proportion to what was sent. */
const outOfProportion = ({ work }: Outcome, bytes: number): string[] =>
  Object.entries(maxPerByte)
    .map(([kind, most]) => ({ kind, most, spent: work[kind as keyof typeof maxPerByte] }))
    .filter(({ most, spent }) => spent > most * bytes + base)
    .map(({ kind, spent }) => `${spent} ${kind} for ${bytes} bytes`)

const countsOf = ({ work }: Outcome): string => JSON.stringify(work)

/** What a run within the largest limits, and one on the event loop, do that they must not. */
async function faultsOf(
  run: (work: Work) => Promise<unknown>,
  counted: (work: Work) => number,
): Promise<{ faults: string[]; whole: Outcome }> {
  const whole = await workOf(run, maxWorkLimits)
  const inline = await workOf(run, inlineWorkLimits)
  const faults = whole.result === 'failed' ? ['not an error of the API'] : []
  // A decoder that counts nothing would pass everything else here.
  if (whole.result === 'accepted' && counted(whole.work) === 0) faults.push('nothing was counted')
  if (inline.result !== 'exceeded' && countsOf(inline) !== countsOf(whole))
    faults.push('other counts on the event loop')
  return { faults, whole }
}

describe('the tables are complete [SEC-R504]', () => {
  test.each(supportedMediaTypes)('every encoding has costly bodies: %s', (type) => {
    expect(costlyBodies.filter(({ encoding }) => encoding === type).length).toBeGreaterThan(10)
  })

  test.each(Object.values(patchMediaTypes))('every type of patch has costly ones: %s', (type) => {
    expect(costlyPatches.filter((each) => each.type === type).length).toBeGreaterThan(5)
  })
})

describe('work is counted before it is done, and in proportion to the input [SEC-R501]', () => {
  const named = costlyBodies.map((body) => [`${body.encoding}: ${body.name}`, body] as const)
  test.each(named)('%s', async (_name, body) => {
    for (const size of sizes) {
      const bytes = body.make(size)
      const { faults, whole } = await faultsOf(decode(body, bytes), (work) =>
        Math.min(work.tokens + work.yamlTokens, work.nodes),
      )
      expect([...faults, ...outOfProportion(whole, bytes.length)]).toEqual([])
    }
  })

  const patches = costlyPatches.map((each) => [`${each.type}: ${each.name}`, each] as const)
  test.each(patches)('patch %s', async (_name, each) => {
    const originalBytes = JSON.stringify(each.original).length
    for (const size of sizes) {
      const bytes = each.make(size)
      const { faults, whole } = await faultsOf(patch(each, bytes), (work) => work.operations)
      expect(faults).toEqual([])
      expect(whole.work.tokens).toBeLessThanOrEqual(maxPerByte.tokens * bytes.length + base)
      // One that costs more than both texts together is quadratic, and is stopped by its limit.
      const proportion = 4 * (bytes.length + originalBytes) + base
      const most = whole.result === 'exceeded' ? maxWorkLimits.operations : proportion
      expect(whole.work.operations).toBeLessThanOrEqual(most)
    }
  })

  test.each([
    ['strategic', 'one element many times'],
    ['json', 'copies of a large map'],
    ['json', 'additions to the front of a list'],
  ])('quadratic work is stopped: %s %s', async (type, name) => {
    const each = costlyPatches.find((row) => row.type === type && row.name === name)!
    const { work, result } = await workOf(patch(each, each.make(400_000)), {
      ...maxWorkLimits,
      tokens: Number.POSITIVE_INFINITY,
    })
    expect(result).toBe('exceeded')
    expect(work.operations).toBeGreaterThan(maxWorkLimits.operations / 2)
  })

  test('the structs that a body becomes are counted by their fields', async () => {
    const row = costlyBodies.find(({ name }) => name === 'empty structs')!
    const { work } = await workOf(decode(row, row.make(3_000)), maxWorkLimits)
    // 1,000 containers, each an item of a list and a struct of some 25 fields.
    expect(work.nodes).toBeGreaterThan(3_000)
  })

  test('every list and map of every kind', async () => {
    const kinds = [...kindDefinitions.map(({ kind }) => kind), ...reviewResources].map(
      ({ group, version, kind }) => ({ group, version, kind }),
    )
    let fields = 0
    for (const body of schemaBodies(kinds)) {
      const bytes = body.make(10_000)
      const outcome = await workOf(decode(body, bytes), maxWorkLimits)
      expect(outOfProportion(outcome, bytes.length)).toEqual([])
      fields++
    }
    expect(fields).toBeGreaterThan(500)
  })
})

describe('a packed body unpacks to a bounded multiple of its size [SEC-R502]', () => {
  const limits = { maxBytes: 3 * 2 ** 20, timeoutMs: 60_000, signal: new AbortController().signal }
  const received = (body: Buffer) =>
    readBody(
      Object.assign(Readable.from([body]), { headers: { 'content-encoding': 'gzip' } }) as never,
      limits,
    )

  test.each(costlyBodies.map((body) => [`${body.encoding}: ${body.name}`, body] as const))(
    '%s',
    async (_name, body) => {
      for (const size of [5_000, 500_000]) {
        const unpacked = body.make(size)
        const sent = packed(unpacked)
        const allowed = Math.max(16 * 1024, 20 * sent.length)
        const outcome = await received(sent).then(
          ({ length }) => length,
          (error: unknown) => (error instanceof ApiError ? error.reason : error),
        )
        expect(outcome).toBe(unpacked.length <= allowed ? unpacked.length : 'RequestEntityTooLarge')
      }
    },
  )
})
