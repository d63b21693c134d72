import { expect, test } from 'vitest'
import { pemBlocks } from './pem-blocks.ts'

const block = (label: string, body: string) =>
  `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`

test('blocks are found in their order, whatever is around them', () => {
  const text = `hello\n${block('A', 'AQID')}between\r\n${block('B C', 'BA==')}end`
  const found = pemBlocks(text).map(({ label, bytes }) => [label, [...bytes]])
  expect(found).toEqual([
    ['A', [1, 2, 3]],
    ['B C', [4]],
  ])
})

test('headers are noticed', () => {
  expect(pemBlocks(block('A', 'Proc-Type: 4,ENCRYPTED\n\nAQID'))[0]?.hasHeaders).toBe(true)
  expect(pemBlocks(block('A', 'AQID'))[0]?.hasHeaders).toBe(false)
})

test.each([
  ['', 'nothing'],
  ['-----BEGIN A-----\nAQID', 'no end'],
  ['-----BEGIN A-----\nAQID\n-----END B-----', 'another end'],
  [block('A', 'not base64!'), 'no base64'],
  ['x -----BEGIN A-----\nAQID\n-----END A-----', 'a begin inside a line'],
])('%j holds no block: %s', (text) => {
  expect(pemBlocks(text)).toEqual([])
})

test('a text of nothing but beginnings is read in linear time', () => {
  const text = '-----BEGIN A-----\n'.repeat(100_000)
  const began = performance.now()
  expect(pemBlocks(text)).toEqual([])
  expect(performance.now() - began).toBeLessThan(2_000)
})
