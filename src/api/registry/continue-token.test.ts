import { describe, expect, test } from 'vitest'
import { decodeContinue, encodeContinue } from './list.ts'

const prefix = 'core/configmaps/default/'
const token = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

test('a continue value leads to where the page ended [GND-R55]', () => {
  const point = { revision: 7, after: `${prefix}a` }
  expect(decodeContinue(encodeContinue(point, prefix), prefix)).toEqual(point)
})

test('it holds nothing of where objects are stored', () => {
  const text = encodeContinue({ revision: 7, after: `${prefix}a` }, prefix)
  expect(Buffer.from(text, 'base64url').toString()).not.toContain('configmaps')
})

describe('a continue value that is not ours is refused [GND-R55]', () => {
  const v = 'meta.k8s.io/v1'
  test.each([
    ['garbage', 'garbage', 'it does not come from this server'],
    ['not base64', '***', 'it does not come from this server'],
    ['not an object', token('x'), 'it does not come from this server'],
    ['of another version', token({ v: 'v9', rv: 1, start: 'a' }), 'encoded version v9'],
    ['without a revision', token({ v, start: 'a' }), 'incorrect encoded start resourceVersion'],
    ['with a broken revision', token({ v, rv: 1.5, start: 'a' }), 'start resourceVersion'],
    ['without a start', token({ v, rv: 5 }), 'encoded start key empty'],
    ['that climbs', token({ v, rv: 5, start: '../../secrets/a' }), '../../secrets/a'],
  ])('%s', (_name, text, why) => {
    expect(() => decodeContinue(text, prefix)).toThrow(why)
  })
})
