import { describe, expect, test } from 'vitest'
import { type KubeObject, systemClock } from '../../core/index.ts'
import { toCause } from '../validation/index.ts'
import { namespace } from './namespace.ts'

const context = { user: { username: 'u', groups: [] }, clock: systemClock }

const object = (fields: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'team' },
  ...fields,
})
const part = (name: string) => namespace.subresources.find((one) => one.name === name)!

describe('a namespace [GND-R45]', () => {
  test('keeps its finalizers and its phase whatever an update says', () => {
    const stored = object({ spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } })
    const draft = object({ spec: { finalizers: ['x/y'] }, status: { phase: 'Terminating' } })
    namespace.prepareUpdate(draft, stored, context)
    expect(draft).toEqual(stored)
  })

  test('loses its last finalizer through finalize, and nothing else', () => {
    const stored = object({
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Terminating' },
    })
    const sent = object({ spec: {}, status: { phase: 'Active' } })
    expect(part('finalize').merge(sent, stored, context)).toEqual(
      object({ spec: {}, status: { phase: 'Terminating' } }),
    )
  })

  test.each([
    [undefined, 'Active', undefined],
    [undefined, 'Terminating', "may only be 'Active' if `deletionTimestamp` is empty"],
    ['2026-01-01T00:00:00Z', 'Terminating', undefined],
    [
      '2026-01-01T00:00:00Z',
      'Active',
      "may only be 'Terminating' if `deletionTimestamp` is not empty",
    ],
  ])('deleted at %s may be %s: %s', (deletionTimestamp, phase, refusal) => {
    const draft = object({ status: { phase } })
    if (deletionTimestamp) draft.metadata.deletionTimestamp = deletionTimestamp
    const said = part('status').validate!(draft, draft).map((one) => toCause(one).message)
    expect(said).toEqual(refusal ? [`Invalid value: "${phase}": ${refusal}`] : [])
  })

  test('gets its label when its name was generated', () => {
    const draft = object()
    draft.metadata.name = ''
    namespace.applyDefaults(draft)
    expect(draft.metadata.labels).toBeUndefined()
    draft.metadata.name = 'team-x7k2p'
    namespace.prepareCreate(draft, context)
    expect(draft.metadata.labels).toEqual({ 'kubernetes.io/metadata.name': 'team-x7k2p' })
  })
})
