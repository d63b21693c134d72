import { isDeepStrictEqual } from 'node:util'
import { isRecord, type KubeObject } from '../../core/index.ts'
import { readRoleRef, readRoleSelectors, readRules, writeRule } from '../rbac-objects.ts'
import { compactRules, missingRules } from '../rule-coverage.ts'
import { autoUpdate } from './writing.ts'

/** What must be done so that a stored object holds what the default policy says. */
export type Reconciliation =
  | { readonly action: 'none' }
  | { readonly action: 'update' | 'recreate'; readonly object: KubeObject }

const items = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/**
 * Compares a stored object with its default: what is missing is added, what an administrator added
 * stays, and an object that opted out is left alone.
 */
export function reconciled(stored: KubeObject, expected: KubeObject): Reconciliation {
  if (stored.metadata.annotations?.[autoUpdate] === 'false') return { action: 'none' }
  const isBinding = expected.kind.endsWith('Binding')
  // A role reference cannot be changed, only be made anew.
  if (isBinding && !isDeepStrictEqual(readRoleRef(stored), readRoleRef(expected))) {
    return { action: 'recreate', object: expected }
  }
  const object: KubeObject = {
    ...stored,
    metadata: {
      ...stored.metadata,
      labels: { ...expected.metadata.labels, ...stored.metadata.labels },
      annotations: { ...expected.metadata.annotations, ...stored.metadata.annotations },
    },
    ...(isBinding ? mergedSubjects(stored, expected) : mergedRules(stored, expected)),
  }
  if (!isBinding) mergeAggregation(object, stored, expected)
  return isDeepStrictEqual(object, stored) ? { action: 'none' } : { action: 'update', object }
}

function mergedSubjects(stored: KubeObject, expected: KubeObject) {
  const present = items(stored['subjects'])
  const missing = items(expected['subjects']).filter(
    (subject) => !present.some((each) => isDeepStrictEqual(each, subject)),
  )
  return missing.length > 0 && { subjects: [...present, ...missing] }
}

function mergedRules(stored: KubeObject, expected: KubeObject) {
  const missing = missingRules(readRules(stored), readRules(expected))
  if (missing.length === 0) return {}
  return { rules: [...items(stored['rules']), ...compactRules(missing).map(writeRule)] }
}

function mergeAggregation(object: KubeObject, stored: KubeObject, expected: KubeObject): void {
  const wanted = readRoleSelectors(expected)
  if (!wanted) {
    delete object['aggregationRule']
    return
  }
  const present = readRoleSelectors(stored) ?? []
  const missing = wanted.filter(
    (selector) => !present.some((each) => isDeepStrictEqual(each, selector)),
  )
  if (missing.length === 0) return
  const rule = isRecord(stored['aggregationRule']) ? stored['aggregationRule'] : {}
  object['aggregationRule'] = { ...rule, clusterRoleSelectors: [...present, ...missing] }
}
