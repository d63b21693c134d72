import { expect, test } from 'vitest'
import { apiModel, type ExtraResource } from './api-model.ts'
import { openapiDocument } from './openapi.ts'

const gvk = { group: 'lab.sallyport.dev', version: 'v1alpha1', kind: 'Thing' }
const thing = {
  ...gvk,
  resource: 'things',
  singular: 'thing',
  namespaced: true,
  verbs: ['delete', 'get', 'list', 'watch'],
}
const documentOf = (live: ExtraResource) =>
  openapiDocument(apiModel({ kinds: [], live: [live] })[0]!, 'v1.36.3')

test('a kind of a feature is described by the fields that it names, and as a list', () => {
  const schema = { description: 'A thing.', properties: { spec: { type: 'object' } } }
  const { paths, components } = documentOf({ ...thing, schema })
  const path = '/apis/lab.sallyport.dev/v1alpha1/namespaces/{namespace}/things/{name}'
  expect(Object.keys(paths[path] ?? {})).toEqual(['parameters', 'delete', 'get'])
  expect(paths[path]?.get?.['x-kubernetes-group-version-kind']).toEqual(gvk)
  const { schemas = {} } = components ?? {}
  expect(schemas['dev.sallyport.lab.v1alpha1.Thing']).toMatchObject({
    description: 'A thing.',
    properties: { apiVersion: { type: 'string' }, metadata: {}, spec: { type: 'object' } },
    'x-kubernetes-group-version-kind': [gvk],
  })
  expect(schemas['dev.sallyport.lab.v1alpha1.ThingList']).toMatchObject({
    properties: {
      items: { items: { $ref: '#/components/schemas/dev.sallyport.lab.v1alpha1.Thing' } },
    },
  })
  expect(Object.keys(schemas)).toContain('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')
})

test('a kind that names no fields is not described', () => {
  expect(documentOf(thing).paths).toEqual({})
})
