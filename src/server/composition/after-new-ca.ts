import type { Logger } from '../../core/index.ts'
import type { Pki } from '../../pki/index.ts'

/** Does something again whenever the cluster's CA has changed; a failure is logged and left to the next periodic check. */
export function afterNewCa(
  pki: Pki,
  work: { readonly name: string; readonly run: () => Promise<void>; readonly log: Logger },
): void {
  pki.onNewClusterCa(() => {
    work.run().catch((err: unknown) => {
      work.log.error({ err, part: work.name }, 'could not follow the new CA')
    })
  })
}
