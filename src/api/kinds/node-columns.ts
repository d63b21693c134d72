import type { KubeObject } from '../../core/index.ts'
import { ageColumn, column, nameColumn, wideColumn } from './columns.ts'
import { fieldsAt, flagAt, recordsAt, textAt } from './fields.ts'
import type { Column } from './kind-definition.ts'

const rolePrefix = 'node-role.kubernetes.io/'
const roleLabel = 'kubernetes.io/role'

function statusOf(object: KubeObject): string {
  const conditions = recordsAt(fieldsAt(object, 'status'), 'conditions')
  const ready = conditions.findLast((condition) => condition['type'] === 'Ready')
  const readiness = ready ? (ready['status'] === 'True' ? 'Ready' : 'NotReady') : 'Unknown'
  const isCordoned = flagAt(fieldsAt(object, 'spec'), 'unschedulable')
  return isCordoned ? `${readiness},SchedulingDisabled` : readiness
}

function roleOf([label, value]: [string, string]): string {
  if (label.startsWith(rolePrefix)) return label.slice(rolePrefix.length)
  return label === roleLabel ? value : ''
}

function rolesOf(object: KubeObject): string {
  const roles = Object.entries(object.metadata.labels ?? {})
    .map(roleOf)
    .filter(Boolean)
  return [...new Set(roles)].sort().join(',') || '<none>'
}

function addressOf(object: KubeObject, type: string): string {
  const addresses = recordsAt(fieldsAt(object, 'status'), 'addresses')
  const found = addresses.find((address) => address['type'] === type)
  return found ? textAt(found, 'address') : '<none>'
}

const infoOf = (object: KubeObject, key: string): string =>
  textAt(fieldsAt(fieldsAt(object, 'status'), 'nodeInfo'), key)

function kernelOf(object: KubeObject): string {
  const kernel = infoOf(object, 'kernelVersion') || '<unknown>'
  const architecture = infoOf(object, 'architecture')
  return architecture ? `${kernel} (${architecture})` : kernel
}

/** What `kubectl get nodes` shows. */
export const nodeColumns: readonly Column[] = [
  nameColumn,
  column('Status', 'Whether the node takes pods.', statusOf),
  column('Roles', 'What the node is for, by its labels.', rolesOf),
  ageColumn,
  column('Version', 'Version of the kubelet.', (object) => infoOf(object, 'kubeletVersion')),
  wideColumn('Internal-IP', 'Address inside the cluster.', (object) =>
    addressOf(object, 'InternalIP'),
  ),
  wideColumn('External-IP', 'Address for the outside.', (object) =>
    addressOf(object, 'ExternalIP'),
  ),
  wideColumn('OS-Image', 'Operating system.', (object) => infoOf(object, 'osImage') || '<unknown>'),
  wideColumn('Kernel-Version', 'Kernel and architecture.', kernelOf),
  wideColumn(
    'Container-Runtime',
    'What runs the containers.',
    (object) => infoOf(object, 'containerRuntimeVersion') || '<unknown>',
  ),
]
