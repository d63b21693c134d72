import { expect, test } from 'vitest'
import { toCause } from '../validation/index.ts'
import { featureProblems, swapProblems } from './node.ts'

const nodeWith = (status: object) => ({
  kind: 'Node',
  apiVersion: 'v1',
  metadata: { name: 'n' },
  status,
})

test.each([
  [[], []],
  [['A', 'A/b', 'B'], []],
  [['b'], ['0 Invalid value: "b": invalid feature name']],
  [['B', 'A'], ['1 Invalid value: "A": list must be sorted alphabetically']],
  [['A', 'A'], ['1 Duplicate value: "A"']],
  [['B', 'a_'], ['1 Invalid value: "a_": invalid feature name']],
])('features %j of a node have the problems %j [GND-R62]', (declaredFeatures, expected) => {
  const found = featureProblems(nodeWith({ declaredFeatures }))
    .map(toCause)
    .map(({ field, message }) => `${/\[(\d+)\]/.exec(field ?? '')?.[1]} ${message}`)
  expect(found.map((text, index) => text.slice(0, expected[index]?.length))).toEqual(expected)
})

test.each([
  [{}, 0],
  [{ nodeInfo: { swap: { capacity: 1 } } }, 0],
  [{ nodeInfo: { swap: { capacity: 0 } } }, 1],
])('swap of %j has %i problems [GND-R62]', (status, count) => {
  expect(swapProblems(nodeWith(status))).toHaveLength(count)
})
