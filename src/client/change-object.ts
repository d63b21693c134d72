import { type ClusterView, hasReason, type Key, type Kind, type KubeObject } from '../core/index.ts'
import { statedPreconditions } from './preconditions.ts'

const maxAttempts = 10

/**
 * Changes an object, or creates it, whoever else is writing it: whoever loses a race reads again and
 * decides anew. `change` gets the object as it is and returns what it is to be; `undefined` leaves
 * it alone. True when something was written.
 */
export async function changeObject(
  { view, kind, key }: { readonly view: ClusterView; readonly kind: Kind; readonly key: Key },
  change: (
    present: KubeObject | undefined,
  ) => KubeObject | undefined | Promise<KubeObject | undefined>,
  signal: AbortSignal,
): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    const present = await view.get(kind, key, signal)
    const wanted = await change(present)
    if (!wanted) return false
    const { resourceVersion } = present?.metadata ?? {}
    try {
      if (!present) await view.write('create', wanted, {}, signal)
      else await view.write('update', wanted, statedPreconditions({ resourceVersion }), signal)
      return true
    } catch (error) {
      const lostRace = hasReason(error, 'AlreadyExists', 'Conflict', 'NotFound')
      if (!lostRace || attempt === maxAttempts) throw error
    }
  }
}
