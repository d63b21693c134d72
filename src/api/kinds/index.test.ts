import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { apiVersionOf } from '../../core/index.ts'
import { definitionOfObject, definitionOfResource, kindDefinitions } from './index.ts'

interface Resource {
  readonly groupVersion: string
  readonly name: string
  readonly singularName: string
  readonly namespaced: boolean
  readonly kind: string
  readonly verbs: readonly string[]
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly fields?: readonly string[]
}

const recorded = JSON.parse(
  readFileSync(
    new URL('../../../test/fixtures/kube-apiserver/discovery/resources.json', import.meta.url),
    'utf8',
  ),
) as Resource[]

const find = (groupVersion: string, name: string): Resource =>
  recorded.find((one) => one.groupVersion === groupVersion && one.name === name)!

const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
const byName = kindDefinitions.map((definition) => [definition.kind.kind, definition] as const)

test.each(byName)('%s is served as a real kube-apiserver serves it [GND-R45]', (_, definition) => {
  const { kind, singular, shortNames, categories, verbs = allVerbs } = definition
  const real = find(apiVersionOf(kind), kind.resource)
  expect({
    kind: kind.kind,
    namespaced: kind.namespaced,
    singular,
    shortNames,
    categories,
    verbs,
  }).toEqual({
    kind: real.kind,
    namespaced: real.namespaced,
    singular: real.singularName,
    shortNames: real.shortNames ?? [],
    categories: real.categories ?? [],
    verbs: real.verbs,
  })
})

const subresources = kindDefinitions.flatMap((definition) =>
  definition.subresources.map(
    (part) => [definition.kind.resource, part.name, definition, part] as const,
  ),
)

test.each(subresources)('%s/%s has its verbs [GND-R45]', (resource, name, definition, part) => {
  const real = find(apiVersionOf(definition.kind), `${resource}/${name}`)
  expect(part.verbs).toEqual(real.verbs)
})

test.each(byName)('%s is selected by the fields of Kubernetes [GND-R54]', (_, definition) => {
  const own = Object.keys(definition.selectableFields)
  const real = find(apiVersionOf(definition.kind), definition.kind.resource).fields!
  expect(own.toSorted()).toEqual(real.filter((field) => !field.startsWith('metadata.')).toSorted())
})

test('a kind is found by its URL and by its objects', () => {
  const slices = definitionOfResource({
    group: 'discovery.k8s.io',
    version: 'v1',
    resource: 'endpointslices',
  })
  expect(slices?.kind.kind).toBe('EndpointSlice')
  expect(definitionOfObject({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' })).toBe(
    slices,
  )
  expect(definitionOfObject({ apiVersion: 'v1', kind: 'Pod' })?.kind.resource).toBe('pods')
})

test.each([
  ['', 'v2', 'pods'],
  ['apps', 'v1', 'pods'],
  ['', 'v1', 'pod'],
])('there is no kind at %s/%s %s', (group, version, resource) => {
  expect(definitionOfResource({ group, version, resource })).toBeUndefined()
})
