import { apiVersionOf, type Kind, type KubeObject } from '../../core/index.ts'
import { checkStructure, schemaOf } from '../schema/index.ts'

const emptyObjects = new Map<Kind, Readonly<Record<string, unknown>>>()

/** What every object of the kind shows even if nothing was said of it. */
function emptyObject(kind: Kind): Readonly<Record<string, unknown>> {
  const known = emptyObjects.get(kind)
  if (known) return known
  const schema = schemaOf(kind)
  const object = schema ? checkStructure({}, schema).object : {}
  emptyObjects.set(kind, object)
  return object
}

/** The object of a bookmark: nothing but a version. `initialEnd` marks the end of the initial state. */
export function bookmarkObject(kind: Kind, revision: number, initialEnd: boolean): KubeObject {
  return {
    ...emptyObject(kind),
    kind: kind.kind,
    apiVersion: apiVersionOf(kind),
    metadata: {
      name: '',
      resourceVersion: String(revision),
      ...(initialEnd && { annotations: { 'k8s.io/initial-events-end': 'true' } }),
    },
  }
}
