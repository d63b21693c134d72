import { badRequest, type Kind, type KubeObject } from '../../core/index.ts'

/** Puts the URL's namespace into an object of `kind`, and refuses one that differs. */
export function placeInNamespace(
  { namespaced }: Kind,
  namespace: string,
  { metadata }: KubeObject,
): void {
  if (!namespaced) {
    delete metadata.namespace
    return
  }
  if (metadata.namespace && metadata.namespace !== namespace)
    throw badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    )
  metadata.namespace = namespace
}
