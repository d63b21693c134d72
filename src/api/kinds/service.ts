import { nameIsDnsLabel } from '../validation/names.ts'
import { defineKind, statusSubresource } from './define-kind.ts'

/** The kind Service. */
export const service = defineKind({
  kind: { group: '', version: 'v1', kind: 'Service', resource: 'services', namespaced: true },
  shortNames: ['svc'],
  categories: ['all'],
  subresources: [statusSubresource()],
  createOnUpdate: true,
  nameProblems: nameIsDnsLabel,
})
