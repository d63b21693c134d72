import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { maxWork } from '../content/index.ts'
import { schemaOf } from '../schema/index.ts'
import { applyPatch } from './index.ts'

interface Answer {
  readonly kind: string
  readonly original: Record<string, unknown>
  readonly patch: unknown
  /** What Kubernetes' own code (v0.36.3) made of it, without the nulls and directives it leaves behind. */
  readonly result: unknown
}

const file = new URL('./generated/kubernetes-answers.json', import.meta.url)
const answers: Answer[] = JSON.parse(readFileSync(file, 'utf8'))

test('the patches are as various as those of kubectl apply', () => {
  const text = JSON.stringify(answers)
  expect(answers).toHaveLength(100)
  for (const directive of [
    '"$patch":"delete"',
    '"$patch":"replace"',
    '"$retainKeys"',
    '"$setElementOrder/',
    '"$deleteFromPrimitiveList/',
  ]) {
    expect(text).toContain(directive)
  }
})

test.each(answers.map((answer, index) => [index, answer] as const))(
  'strategic merge patch %i has the outcome that Kubernetes has [GND-R57]',
  (_, { kind, original, patch, result }) => {
    const schema = schemaOf({ group: '', version: 'v1', kind })!
    expect(applyPatch('strategic', patch, original, { schema, work: maxWork() })).toEqual(result)
  },
)
