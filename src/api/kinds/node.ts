import { defineKind, statusSubresource } from './define-kind.ts'

/** The kind Node. */
export const node = defineKind({
  kind: { group: '', version: 'v1', kind: 'Node', resource: 'nodes', namespaced: false },
  shortNames: ['no'],
  subresources: [statusSubresource()],
})
