import { expect, test } from 'vitest'
import type { Schema } from './openapi-types.ts'
import { swaggerSchema } from './openapi-v2.ts'

const ref = { $ref: '#/components/schemas/a.B' }
const refInV2 = { $ref: '#/definitions/a.B' }

test.each<[string, Schema, Schema]>([
  ['a reference', ref, refInV2],
  [
    'a reference with words',
    { allOf: [ref], description: 'It.', default: 'x' },
    { ...refInV2, description: 'It.' },
  ],
  [
    'a choice of types',
    { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] },
    { format: 'int-or-string', type: 'string' },
  ],
  [
    'a default value',
    { type: 'string', default: 'TCP', enum: ['TCP'] },
    { type: 'string', enum: ['TCP'] },
  ],
  ['a list', { type: 'array', items: ref }, { type: 'array', items: refInV2 }],
  [
    'a map of lists',
    { type: 'object', additionalProperties: { type: 'array', items: ref } },
    { type: 'object', additionalProperties: { type: 'array', items: refInV2 } },
  ],
  [
    'properties, also those with a name that means something elsewhere',
    { type: 'object', properties: { default: ref, items: { type: 'string', default: '' } } },
    { type: 'object', properties: { default: refInV2, items: { type: 'string' } } },
  ],
  [
    'extensions',
    { type: 'object', 'x-kubernetes-map-type': 'atomic' },
    { type: 'object', 'x-kubernetes-map-type': 'atomic' },
  ],
])('%s', (_name, schema, expected) => {
  expect(swaggerSchema(schema)).toEqual(expected)
})
