import type { ResourceApi } from '../../api/index.ts'
import type { Authenticator, Backend } from '../../core/index.ts'
import type { LocalCluster } from './open-cluster.ts'

/** The pipeline's end on our own registry. */
export function localBackend(
  { view, authorizer }: LocalCluster,
  resources: ResourceApi,
  tokens: readonly Authenticator[],
): Backend {
  return {
    view,
    authorizer,
    tokens,
    forward: (request, response, signal) => resources.handle(request, response, signal),
  }
}
