import { describe, expect, test } from 'vitest'
import type { KubeObject, ObjectMeta } from '../../core/index.ts'
import { configMap } from '../kinds/config-map.ts'
import {
  toCause,
  validateCreate,
  validateMetadata,
  validateMetadataUpdate,
  validateUpdate,
} from './index.ts'

const object = (metadata: Partial<ObjectMeta>): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'default', resourceVersion: '1', ...metadata },
})

const said = (problems: Parameters<typeof toCause>[0][]): string[] =>
  problems.map(toCause).map((cause) => `${cause.field}: ${cause.message}`)

describe('metadata by itself', () => {
  test('a name or a generateName is needed', () => {
    expect(said(validateMetadata(object({ name: '' }), configMap))).toEqual([
      'metadata.name: Required value: name or generateName is required',
    ])
  })

  test('annotations may have 256 KiB together', () => {
    const fits = object({ annotations: { a: 'x'.repeat(262_143) } })
    const tooLarge = object({ annotations: { a: 'x'.repeat(262_144) } })
    expect(validateMetadata(fits, configMap)).toEqual([])
    expect(said(validateMetadata(tooLarge, configMap))).toEqual([
      'metadata.annotations: Too long: may not be more than 262144 bytes',
    ])
  })

  test('every problem is reported at once, in order, with its path [GND-R62]', () => {
    const wrong = {
      ...object({ name: 'A', labels: { 'a b': '-' }, annotations: { 'c d': '' }, generation: -1 }),
      data: { 'e f': '' },
    }
    expect(validateCreate(configMap, wrong).map((problem) => problem.field)).toEqual([
      'metadata.name',
      'metadata.generation',
      'metadata.labels',
      'metadata.labels',
      'metadata.annotations',
      'data[e f]',
    ])
  })
})

describe('a change of metadata', () => {
  test.each([
    ['name', 'b', '"b"'],
    ['namespace', 'other', '"other"'],
    ['uid', '2', '"2"'],
    ['creationTimestamp', '2026-01-01T00:00:00Z', '"2026-01-01T00:00:00Z"'],
    ['deletionTimestamp', '2026-01-01T00:00:00Z', '"2026-01-01T00:00:00Z"'],
    ['deletionGracePeriodSeconds', 3, '3'],
  ])('%s may not change', (field, value, shown) => {
    expect(
      said(validateMetadataUpdate(object({ [field]: value }), object({ uid: '1' }))),
    ).toContain(`metadata.${field}: Invalid value: ${shown}: field is immutable`)
  })

  test('what was deleted may not come back', () => {
    const stored = object({ deletionTimestamp: '2026-01-01T00:00:00Z' })
    expect(said(validateMetadataUpdate(object({}), stored))).toEqual([
      'metadata.deletionTimestamp: Invalid value: null: field is immutable',
    ])
  })

  test('an object that is being deleted loses finalizers and gets no new ones [GND-R49]', () => {
    const deletionTimestamp = '2026-01-01T00:00:00Z'
    const stored = object({ deletionTimestamp, finalizers: ['a/b', 'c/d'] })
    const fewer = object({ deletionTimestamp, finalizers: ['a/b'] })
    const more = object({ deletionTimestamp, finalizers: ['a/b', 'x/z', 'x/y'] })
    expect(validateMetadataUpdate(fewer, stored)).toEqual([])
    expect(said(validateMetadataUpdate(more, stored))).toEqual([
      'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x/y", "x/z"}',
    ])
  })

  test('a change must say which version it is of', () => {
    expect(said(validateMetadataUpdate(object({ resourceVersion: '' }), object({})))).toEqual([
      'metadata.resourceVersion: Invalid value: "": must be specified for an update',
    ])
  })

  test('nothing is said twice', () => {
    const wrong = object({ labels: { 'a b': 'c' } })
    expect(validateUpdate(configMap, wrong, object({}))).toHaveLength(1)
  })
})
