import type { KubeObject } from '../../core/index.ts'
import type { Allowances, KindDefinition } from '../kinds/kind-definition.ts'
import { type FieldProblem, withoutRepeats } from './field-problem.ts'
import { validateMetadata, validateMetadataUpdate } from './metadata.ts'

/** Every problem of a new object, in Kubernetes' order. */
export const validateCreate = (
  definition: KindDefinition,
  draft: KubeObject,
  allowances: Allowances = {},
): FieldProblem[] => [
  ...validateMetadata(draft, definition),
  ...definition.validate(draft, allowances),
]

/** Every problem of a changed object, in Kubernetes' order, each once. */
export const validateUpdate = (
  definition: KindDefinition,
  draft: KubeObject,
  stored: KubeObject,
  allowances: Allowances = {},
): FieldProblem[] =>
  withoutRepeats([
    ...validateMetadata(draft, definition),
    ...validateMetadataUpdate(draft, stored),
    ...definition.validateUpdate(draft, stored),
    ...definition.validate(draft, allowances),
  ])
