import { type KubeObject, wellKnownKinds } from '../../core/index.ts'
import { defineKind } from './define-kind.ts'
import { recordsAt, textAt } from './fields.ts'

const mountableAnnotation = 'kubernetes.io/enforce-mountable-secrets'

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
  kind: wellKnownKinds.serviceAccount,
  shortNames: ['sa'],
  returnsDeleted: true,
  warnings: ({ metadata }) =>
    metadata.annotations?.[mountableAnnotation] === undefined
      ? []
      : [
          `metadata.annotations[${mountableAnnotation}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
        ],
  prepareCreate: cleanSecretReferences,
  prepareUpdate: cleanSecretReferences,
})
