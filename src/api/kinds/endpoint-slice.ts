import { defineKind } from './define-kind.ts'

/** The kind EndpointSlice. */
export const endpointSlice = defineKind({
  kind: {
    group: 'discovery.k8s.io',
    version: 'v1',
    kind: 'EndpointSlice',
    resource: 'endpointslices',
    namespaced: true,
  },
  hasGeneration: true,
})
