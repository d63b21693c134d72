import { selectsNode } from '../../authz/index.ts'
import {
  type Authorizer,
  type ClusterView,
  type Decision,
  machineNameOf,
  machineOf,
  type ResourceAttributes,
  wellKnownKinds,
} from '../../core/index.ts'

const allowed: Decision = { allowed: true, reason: '' }
const noOpinion: Decision = { allowed: false, reason: '' }

/** Lets a machine see its own Pods and no others; what it may write is up to RBAC and `machineAdmission`. */
export function machineAuthorizer(view: Pick<ClusterView, 'get'>): Authorizer {
  return {
    authorize: ({ user, verb, resource }, signal) => {
      const machine = machineNameOf(user)
      if (machine === undefined || machine === '' || !isPods(resource)) return noOpinion
      if (verb === 'list' || verb === 'watch')
        return selectsNode(resource, machine) ? allowed : noOpinion
      return verb === 'get' ? isOwnPod(view, machine, resource, signal) : noOpinion
    },
    rulesFor: () => ({ resourceRules: [], nonResourceRules: [], incomplete: false }),
  }
}

const isPods = (resource: ResourceAttributes | undefined): resource is ResourceAttributes =>
  resource?.group === '' && resource.resource === 'pods' && resource.subresource === ''

async function isOwnPod(
  view: Pick<ClusterView, 'get'>,
  machine: string,
  { namespace, name }: ResourceAttributes,
  signal: AbortSignal,
): Promise<Decision> {
  const pod = await view.get(wellKnownKinds.pod, { namespace, name }, signal)
  return pod && machineOf(pod) === machine ? allowed : noOpinion
}
