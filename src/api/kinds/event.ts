import { defineKind } from './define-kind.ts'

/** The kind Event. */
export const event = defineKind({
  kind: { group: '', version: 'v1', kind: 'Event', resource: 'events', namespaced: true },
  shortNames: ['ev'],
  createOnUpdate: true,
})
