import type { KubeObject } from '../../core/index.ts'
import { defineKind } from './define-kind.ts'
import { recordsAt, textAt } from './fields.ts'

/** Of a reference to a Secret only the name is kept. */
function cleanSecretReferences(draft: KubeObject): void {
  if (!Array.isArray(draft['secrets'])) return
  draft['secrets'] = recordsAt(draft, 'secrets').map((secret) => {
    const name = textAt(secret, 'name')
    return name ? { name } : {}
  })
}

/** The identity that workloads of a namespace act under. */
export const serviceAccount = defineKind({
  kind: {
    group: '',
    version: 'v1',
    kind: 'ServiceAccount',
    resource: 'serviceaccounts',
    namespaced: true,
  },
  shortNames: ['sa'],
  prepareCreate: cleanSecretReferences,
  prepareUpdate: cleanSecretReferences,
})
