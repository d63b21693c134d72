import type { Kind, KubeObject } from '../../core/index.ts'
import { nameIsDnsSubdomain } from '../validation/names.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { carryOver } from './fields.ts'
import type { KindDefinition, Subresource } from './kind-definition.ts'

/** What a kind must say about itself; the rest has defaults. */
export type KindParticulars = Partial<KindDefinition> & { readonly kind: Kind }

/** Completes a kind: no status, no rules of its own, DNS subdomain names, columns Name and Age. */
export const defineKind = (particulars: KindParticulars): KindDefinition => ({
  singular: particulars.kind.kind.toLowerCase(),
  shortNames: [],
  categories: [],
  subresources: [],
  nameProblems: nameIsDnsSubdomain,
  selectableFields: {},
  applyDefaults: () => {},
  prepareCreate: () => {},
  prepareUpdate: () => {},
  validate: () => [],
  validateUpdate: () => [],
  hasGeneration: false,
  columns: [nameColumn, ageColumn],
  ...particulars,
})

/** Takes `metadata` and the named parts from what was sent, everything else from what is stored. */
export function mergeParts(
  sent: KubeObject,
  stored: KubeObject,
  parts: readonly string[],
): KubeObject {
  const merged: KubeObject = { ...stored, metadata: sent.metadata }
  for (const part of parts) carryOver(merged, sent, part)
  return merged
}

/** The `status` of a kind, with a URL of its own. */
export const statusSubresource = (particulars: Partial<Subresource> = {}): Subresource => ({
  name: 'status',
  verbs: ['get', 'patch', 'update'],
  merge: (sent, stored) => mergeParts(sent, stored, ['status']),
  ...particulars,
})
