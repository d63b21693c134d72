import { defineKind, statusSubresource } from './define-kind.ts'

/** The kind Pod. */
export const pod = defineKind({
  kind: { group: '', version: 'v1', kind: 'Pod', resource: 'pods', namespaced: true },
  shortNames: ['po'],
  categories: ['all'],
  subresources: [statusSubresource()],
  hasGeneration: true,
})
