import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { checkStructure } from './check-structure.ts'
import { schemaOf } from './schema-of.ts'
import { strictScan } from './strict-scan.ts'

/** Written by interop/go/protodump: texts, and what the real decoder makes of them. */
interface Sample {
  readonly group?: string
  readonly kind: string
  readonly text: string
  readonly error?: string
  readonly strict?: readonly string[]
  readonly stored?: unknown
}
const samples: readonly Sample[] = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/generated/structure.json', import.meta.url), 'utf8'),
)
const structOf = (sample: Sample) =>
  schemaOf({ group: sample.group ?? '', version: 'v1', kind: sample.kind })!

/** The check as bodies go through it, with the reasons of its refusal as a value. */
function judge(sample: Sample) {
  try {
    const checked = checkStructure(JSON.parse(sample.text), structOf(sample))
    const strict = strictScan(sample.text, structOf(sample))
    return { checked, strict }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

const accepted = samples.filter((sample) => sample.stored !== undefined)
const refused = samples.filter((sample) => sample.error !== undefined)

describe('as the real decoder does [GND-R58]', () => {
  test.each(accepted.map((sample) => [sample.kind, sample.text, sample] as const))(
    '%s %s is stored in the same form',
    (kind, _text, sample) => {
      const version = sample.group === undefined ? 'v1' : `${sample.group}/v1`
      const { checked } = judge(sample)
      expect({ kind, apiVersion: version, ...checked?.object }).toEqual(sample.stored)
    },
  )

  test.each(accepted.map((sample) => [sample.kind, sample.text, sample] as const))(
    '%s %s has the same unknown and duplicate fields',
    (_kind, _text, sample) => {
      expect(judge(sample).strict).toEqual(sample.strict ?? [])
    },
  )

  test.each(refused.map((sample) => [sample.kind, sample.text, sample] as const))(
    '%s %s is refused with the same words',
    (_kind, _text, sample) => {
      expect(judge(sample).error).toBe(sample.error)
    },
  )
})
