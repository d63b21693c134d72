import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../../../core/index.ts'
import {
  type EndpointGroup,
  endpointsOf,
  planSlices,
  type SliceChanges,
  type SliceTemplate,
} from './plan-slices.ts'

const template: SliceTemplate = {
  namespace: 'n',
  generateName: 'web-',
  labels: { 'kubernetes.io/service-name': 'web' },
  annotations: {},
  owner: { apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'owner', controller: true },
}

const ports = (port: number) => [{ name: 'http', port, protocol: 'TCP' }]

const groupOf = (pods: readonly number[], port = 80, ready = true): EndpointGroup => ({
  addressType: 'IPv4',
  ports: ports(port),
  endpoints: pods.map((pod) => ({
    addresses: [`10.0.${Math.floor(pod / 250)}.${pod % 250}`],
    conditions: { ready },
    targetRef: { kind: 'Pod', namespace: 'n', name: `pod-${pod}` },
  })),
})

/** The slices after the planned writes, as a server would have them. */
class Slices {
  #objects = new Map<string, KubeObject>()
  #count = 0

  get all(): KubeObject[] {
    return [...this.#objects.values()]
  }

  apply(changes: SliceChanges): void {
    for (const { metadata } of changes.delete) this.#objects.delete(metadata.name)
    for (const slice of changes.update) this.#objects.set(slice.metadata.name, slice)
    for (const slice of changes.create) {
      this.#count += 1
      const name = `web-${String(this.#count).padStart(5, '0')}`
      this.#objects.set(name, { ...slice, metadata: { ...slice.metadata, name } })
    }
  }

  plan(groups: EndpointGroup[], max = 100): SliceChanges {
    return planSlices(groups, this.all, template, max)
  }

  /** Plans and applies; returns how many slices were created, updated and deleted. */
  move(groups: EndpointGroup[], max = 100): number[] {
    const changes = this.plan(groups, max)
    this.apply(changes)
    return [changes.create.length, changes.update.length, changes.delete.length]
  }
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

describe('few writes', () => {
  test('nothing is written when nothing changes', () => {
    const slices = new Slices()
    expect(slices.move([groupOf(range(0, 250))])).toEqual([3, 0, 0])
    expect(slices.move([groupOf(range(0, 250).toReversed())])).toEqual([0, 0, 0])
  })

  test('a new endpoint goes into the fullest slice that has room', () => {
    const slices = new Slices()
    slices.move([groupOf(range(0, 250))])
    expect(slices.move([groupOf(range(0, 251))])).toEqual([0, 1, 0])
    expect(slices.all.map((slice) => endpointsOf(slice).length)).toEqual([100, 100, 51])
  })

  test('a slice that is written anyway is filled first', () => {
    const slices = new Slices()
    slices.move([groupOf(range(0, 250))])
    expect(slices.move([groupOf([...range(1, 250), 300])])).toEqual([0, 1, 0])
  })

  test('a changed condition is one update', () => {
    const slices = new Slices()
    slices.move([groupOf(range(0, 150))])
    const changed = groupOf(range(0, 150))
    const [first, ...rest] = changed.endpoints
    const unready = { ...first!, conditions: { ready: false } }
    expect(slices.move([{ ...changed, endpoints: [unready, ...rest] }])).toEqual([0, 1, 0])
  })

  test('changed ports write over the slices that exist', () => {
    const slices = new Slices()
    slices.move([groupOf(range(0, 150), 80)])
    const names = slices.all.map(({ metadata }) => metadata.name)
    expect(slices.move([groupOf(range(0, 150), 8080)])).toEqual([0, 2, 0])
    expect(slices.all.map(({ metadata }) => metadata.name)).toEqual(names)
    expect(slices.all.map((slice) => slice['ports'])).toEqual([ports(8080), ports(8080)])
  })
})

test('the last endpoint leaves an empty slice for its family', () => {
  const slices = new Slices()
  slices.move([groupOf([1])])
  expect(slices.move([{ addressType: 'IPv4', ports: [], endpoints: [] }])).toEqual([0, 1, 0])
  expect(slices.move([{ addressType: 'IPv4', ports: [], endpoints: [] }])).toEqual([0, 0, 0])
  expect(slices.all).toMatchObject([{ addressType: 'IPv4', endpoints: [], ports: [] }])
})

test('slices that another owner left are deleted, never written over', () => {
  const stranger: KubeObject = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'old',
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'before' }],
    },
    addressType: 'IPv4',
    endpoints: [],
    ports: [],
  }
  const changes = planSlices([groupOf([1])], [stranger], template, 100)
  expect(changes.delete).toEqual([stranger])
  expect(changes.create).toHaveLength(1)
  expect(changes.update).toEqual([])
})

test('changed labels of the Service are carried to its slices', () => {
  const slices = new Slices()
  slices.move([groupOf([1])])
  const labelled = { ...template, labels: { ...template.labels, team: 'a' } }
  const changes = planSlices([groupOf([1])], slices.all, labelled, 100)
  expect(changes.update.map(({ metadata }) => metadata.labels)).toEqual([labelled.labels])
})

test('whatever happens, the slices hold exactly the endpoints, none is too large, and all is stable', () => {
  const pods = fc.uniqueArray(fc.nat(60), { maxLength: 40 })
  const step = fc.tuple(pods, fc.constantFrom(80, 81), fc.boolean())
  fc.assert(
    fc.property(fc.array(step, { maxLength: 8 }), fc.integer({ min: 1, max: 7 }), (steps, max) => {
      const slices = new Slices()
      for (const [members, port, ready] of steps) {
        const half = Math.floor(members.length / 2)
        const groups = [
          groupOf(members.slice(0, half), port, ready),
          groupOf(members.slice(half), port + 10),
        ].filter(({ endpoints }) => endpoints.length > 0)
        slices.move(groups, max)
        const held = slices.all.flatMap((slice) => endpointsOf(slice))
        const wanted = groups.flatMap(({ endpoints }) => endpoints)
        const sorted = (list: readonly object[]) => list.map((e) => JSON.stringify(e)).toSorted()
        expect(sorted(held)).toEqual(sorted(wanted))
        expect(slices.all.every((slice) => endpointsOf(slice).length <= max)).toBe(true)
        expect(slices.plan(groups, max)).toEqual({ create: [], update: [], delete: [] })
      }
    }),
  )
})
