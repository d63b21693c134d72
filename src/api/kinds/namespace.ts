import { type KubeObject, wellKnownKinds } from '../../core/index.ts'
import {
  type FieldProblem,
  invalidEach,
  invalidValue,
  problemsOfEach,
} from '../validation/field-problem.ts'
import { qualifiedNameProblems, unqualifiedProblems } from '../validation/metadata.ts'
import { nameIsDnsLabel } from '../validation/names.ts'
import {
  ageColumn,
  column,
  defineKind,
  mergeParts,
  nameColumn,
  statusSubresource,
} from './define-kind.ts'
import { carryOver, ensureFields, fieldsAt, setDefault, textAt, textsAt } from './fields.ts'

const nameLabel = 'kubernetes.io/metadata.name'
const ownFinalizer = 'kubernetes'

const phaseOf = (object: KubeObject): string => textAt(fieldsAt(object, 'status'), 'phase')

function labelWithName({ metadata }: KubeObject): void {
  if (metadata.name) metadata.labels = { ...metadata.labels, [nameLabel]: metadata.name }
}

function prepareCreate(draft: KubeObject): void {
  labelWithName(draft)
  draft['status'] = { phase: 'Active' }
  const spec = ensureFields(draft, 'spec')
  const finalizers = textsAt(spec, 'finalizers')
  spec['finalizers'] = finalizers.includes(ownFinalizer)
    ? finalizers
    : [...finalizers, ownFinalizer]
}

const finalizerProblems = (name: string, field: string): FieldProblem[] => [
  ...invalidEach(field, name, qualifiedNameProblems(name)),
  ...unqualifiedProblems(name, field),
]

function validate(draft: KubeObject): FieldProblem[] {
  const finalizers = textsAt(fieldsAt(draft, 'spec'), 'finalizers')
  return problemsOfEach(finalizers, (name) => finalizerProblems(name, 'spec.finalizers'))
}

function validateStatus(draft: KubeObject): FieldProblem[] {
  const deleting = draft.metadata.deletionTimestamp !== undefined
  const expected = deleting ? 'Terminating' : 'Active'
  const phase = phaseOf(draft)
  if (phase === expected) return []
  const when = deleting ? 'is not empty' : 'is empty'
  const detail = `may only be '${expected}' if \`deletionTimestamp\` ${when}`
  return [invalidValue('status.Phase', phase, detail)]
}

/** A scope for the names of other objects. */
export const namespace = defineKind({
  kind: wellKnownKinds.namespace,
  shortNames: ['ns'],
  // Nobody deletes every namespace at once.
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  subresources: [
    statusSubresource({ validate: validateStatus }),
    {
      name: 'finalize',
      verbs: ['update'],
      merge: (sent, stored) => mergeParts(sent, stored, ['spec']),
      validate: (draft) =>
        problemsOfEach(textsAt(fieldsAt(draft, 'spec'), 'finalizers'), (name, index) =>
          finalizerProblems(name, `spec.finalizers[${index}]`),
        ),
    },
  ],
  nameProblems: nameIsDnsLabel,
  selectableFields: { 'status.phase': phaseOf },
  applyDefaults: (draft) => {
    labelWithName(draft)
    setDefault(ensureFields(draft, 'status'), 'phase', 'Active')
  },
  prepareCreate,
  prepareUpdate: (draft, stored) => {
    carryOver(ensureFields(draft, 'spec'), fieldsAt(stored, 'spec'), 'finalizers')
    carryOver(draft, stored, 'status')
  },
  validate,
  columns: [
    nameColumn,
    column('Status', 'Whether the namespace is in use or on its way out.', phaseOf),
    ageColumn,
  ],
})
