import { defineKind } from './define-kind.ts'

/** The kind Lease. */
export const lease = defineKind({
  kind: {
    group: 'coordination.k8s.io',
    version: 'v1',
    kind: 'Lease',
    resource: 'leases',
    namespaced: true,
  },
  createOnUpdate: true,
  conditionalUpdateOnly: true,
})
