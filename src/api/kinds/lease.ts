import type { KubeObject } from '../../core/index.ts'
import { type FieldProblem, invalidValue } from '../validation/field-problem.ts'
import { ageColumn, column, defineKind, nameColumn } from './define-kind.ts'
import { ensureFields, fieldsAt, numberAt, textAt } from './fields.ts'

function dropCoordination(draft: KubeObject): void {
  // Coordinated leader election is off in Kubernetes unless its feature gate is set.
  const spec = ensureFields(draft, 'spec')
  delete spec['strategy']
  delete spec['preferredHolder']
}

function validate(draft: KubeObject): FieldProblem[] {
  const spec = fieldsAt(draft, 'spec')
  const duration = numberAt(spec, 'leaseDurationSeconds') ?? 1
  const transitions = numberAt(spec, 'leaseTransitions') ?? 0
  return [
    ...(duration > 0
      ? []
      : [invalidValue('spec.leaseDurationSeconds', duration, 'must be greater than 0')]),
    ...(transitions >= 0
      ? []
      : [invalidValue('spec.leaseTransitions', transitions, 'must be greater than or equal to 0')]),
  ]
}

/** Who leads, or that a node is alive. */
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
  prepareCreate: dropCoordination,
  prepareUpdate: dropCoordination,
  validate,
  columns: [
    nameColumn,
    column('Holder', 'Who holds the lease.', (object) =>
      textAt(fieldsAt(object, 'spec'), 'holderIdentity'),
    ),
    ageColumn,
  ],
})
