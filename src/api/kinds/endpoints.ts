import { defineKind } from './define-kind.ts'

/** The kind Endpoints. */
export const endpoints = defineKind({
  kind: { group: '', version: 'v1', kind: 'Endpoints', resource: 'endpoints', namespaced: true },
  shortNames: ['ep'],
  createOnUpdate: true,
})
