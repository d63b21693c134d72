import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../core/index.ts'
import { configMap, pod } from '../kinds/index.ts'
import { renderTable, toPartialObjectMetadata, toPartialObjectMetadataList } from './table.ts'

const object: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'default', creationTimestamp: '2026-01-01T00:00:00Z' },
  data: { secret: 'x' },
}
const now = Date.parse('2026-01-04T04:00:00Z')
const options = { includeObject: 'Metadata', listMeta: {}, now, includeHeaders: true } as const

describe('a Table [GND-R59]', () => {
  test('has the list it was made from in its metadata', () => {
    const listMeta = { resourceVersion: '7', continue: 'c', remainingItemCount: 3 }
    expect(renderTable(configMap, [], { ...options, listMeta })).toEqual({
      kind: 'Table',
      apiVersion: 'meta.k8s.io/v1',
      metadata: listMeta,
      columnDefinitions: configMap.columns.map(({ name, type, format = '', description }) => ({
        name,
        type,
        format,
        description,
        priority: 0,
      })),
      rows: [],
    })
  })

  test('shows ages as of the time of the answer', () => {
    expect(renderTable(configMap, [object], options).rows[0]?.cells).toEqual(['a', 1, '3d4h'])
  })

  test('has headers only where they are asked for, as in the first event of a watch', () => {
    const later = renderTable(configMap, [object], { ...options, includeHeaders: false })
    expect(later.columnDefinitions).toBeNull()
    expect(later.rows).toHaveLength(1)
  })

  test.each([
    ['None', null],
    ['Metadata', toPartialObjectMetadata(object)],
    ['Object', object],
  ] as const)(
    'with includeObject=%s carries that much of each object',
    (includeObject, carried) => {
      const { rows } = renderTable(configMap, [object], { ...options, includeObject })
      expect(rows[0]?.object).toEqual(carried)
    },
  )

  test('marks rows of pods that are done', () => {
    const done = { ...object, kind: 'Pod', status: { phase: 'Succeeded' } }
    expect(renderTable(pod, [done], options).rows[0]?.conditions).toEqual([
      {
        type: 'Completed',
        status: 'True',
        reason: 'Succeeded',
        message: 'The pod has completed successfully.',
      },
    ])
    expect(renderTable(pod, [object], options).rows[0]).not.toHaveProperty('conditions')
  })
})

test('of an object nothing but its metadata is left [GND-R59]', () => {
  const partial = {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: object.metadata,
  }
  expect(toPartialObjectMetadata(object)).toEqual(partial)
  expect(toPartialObjectMetadataList([object], { resourceVersion: '7' })).toEqual({
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { resourceVersion: '7' },
    items: [partial],
  })
})
