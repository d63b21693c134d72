import { expect, test } from 'vitest'
import type { KubeObject } from '../../core/index.ts'
import { toCause } from '../validation/index.ts'
import { configMap } from './config-map.ts'
import { secret } from './secret.ts'

const object = (fields: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'x',
  metadata: { name: 'a', namespace: 'default' },
  ...fields,
})

const bytes = (count: number) => Buffer.alloc(count).toString('base64')

test('a ConfigMap holds one MiB of text and bytes together', () => {
  const fits = object({ data: { a: 'x'.repeat(524_288) }, binaryData: { b: bytes(524_288) } })
  const tooLarge = object({ data: { a: 'é'.repeat(262_144) }, binaryData: { b: bytes(524_289) } })
  expect(configMap.validate(fits)).toEqual([])
  expect(configMap.validate(tooLarge).map(toCause)).toEqual([
    {
      reason: 'FieldValueTooLong',
      field: '[]',
      message: 'Too long: may not be more than 1048576 bytes',
    },
  ])
})

test('a Secret holds one MiB, counted without its encoding', () => {
  expect(secret.validate(object({ data: { a: bytes(1_048_576) } }))).toEqual([])
  expect(secret.validate(object({ data: { a: bytes(1_048_577) } })).map(toCause)).toEqual([
    {
      reason: 'FieldValueTooLong',
      field: 'data',
      message: 'Too long: may not be more than 1048576 bytes',
    },
  ])
})

test('what is wrong with a secret is told without the secret', () => {
  const draft = object({
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from('{"password": hunter2').toString('base64') },
  })
  const told = JSON.stringify(secret.validate(draft).map(toCause))
  expect(told).toContain('<secret contents redacted>')
  expect(told).not.toContain('hunter2')
})

test('a key named __proto__ is a key like any other', () => {
  const draft = object(JSON.parse('{"stringData": {"__proto__": "x"}}'))
  secret.applyDefaults(draft)
  expect(JSON.stringify(draft['data'])).toBe('{"__proto__":"eA=="}')
})
