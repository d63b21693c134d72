import { type KubeObject, kubeTime, wellKnownKinds } from '../../core/index.ts'
import { dns1123LabelProblems } from '../validation/names.ts'
import { defineKind } from './define-kind.ts'
import {
  carryOver,
  ensureFields,
  type Fields,
  fieldsAt,
  flagAt,
  isUnset,
  recordsAt,
  textAt,
} from './fields.ts'
import type { WriteContext } from './kind-definition.ts'
import { addPriority, addTolerations } from './pod/admission-defaults.ts'
import { podColumns, podIpOf, podRowConditions } from './pod/pod-columns.ts'
import { podDefaults } from './pod/pod-defaults.ts'
import { newPodProblems, validatePod } from './pod/pod-rules.ts'
import { podChangeProblems, podStatusProblems } from './pod/pod-update-rules.ts'
import { qosClassOf } from './pod/qos-class.ts'

const specOf = (object: KubeObject): Fields => fieldsAt(object, 'spec')
const statusOf = (object: KubeObject): Fields => fieldsAt(object, 'status')

function prepareCreate(draft: KubeObject, { clock }: WriteContext): void {
  const spec = ensureFields(draft, 'spec')
  addTolerations(spec)
  addPriority(spec)
  const isGated = recordsAt(spec, 'schedulingGates').length > 0
  draft['status'] = {
    phase: 'Pending',
    ...(isGated && {
      conditions: [
        {
          type: 'PodScheduled',
          status: 'False',
          lastProbeTime: null,
          lastTransitionTime: kubeTime(clock.now()),
          reason: 'SchedulingGated',
          message: 'Scheduling is blocked due to non-empty scheduling gates',
        },
      ],
    }),
    qosClass: qosClassOf(spec),
  }
}

function prepareUpdate(draft: KubeObject, stored: KubeObject): void {
  const spec = ensureFields(draft, 'spec')
  addTolerations(spec)
  for (const field of ['priority', 'preemptionPolicy']) {
    if (isUnset(spec[field])) carryOver(spec, specOf(stored), field)
  }
  carryOver(draft, stored, 'status')
}

/** The kubelet's view; who owns the pod is not its business. */
function mergeStatus(sent: KubeObject, stored: KubeObject): KubeObject {
  const metadata = { ...sent.metadata }
  delete metadata.ownerReferences
  if (stored.metadata.ownerReferences) metadata.ownerReferences = stored.metadata.ownerReferences
  const status = { ...statusOf(sent) }
  if (isUnset(status['qosClass'])) carryOver(status, statusOf(stored), 'qosClass')
  return { ...stored, metadata, status }
}

/** A group of containers; here an object without a kubelet behind it. */
export const pod = defineKind({
  kind: wellKnownKinds.pod,
  shortNames: ['po'],
  returnsDeleted: true,
  marksDeleted: true,
  categories: ['all'],
  subresources: [
    {
      name: 'status',
      verbs: ['get', 'patch', 'update'],
      merge: mergeStatus,
      validate: podStatusProblems,
    },
  ],
  selectableFields: {
    'spec.nodeName': (object) => textAt(specOf(object), 'nodeName'),
    'spec.host': (object) => textAt(specOf(object), 'nodeName'),
    'spec.restartPolicy': (object) => textAt(specOf(object), 'restartPolicy'),
    'spec.schedulerName': (object) => textAt(specOf(object), 'schedulerName'),
    'spec.serviceAccountName': (object) => textAt(specOf(object), 'serviceAccountName'),
    'spec.hostNetwork': (object) => String(flagAt(specOf(object), 'hostNetwork')),
    'status.phase': (object) => textAt(statusOf(object), 'phase'),
    'status.podIP': podIpOf,
    'status.podIPs': podIpOf,
    'status.nominatedNodeName': (object) => textAt(statusOf(object), 'nominatedNodeName'),
  },
  applyDefaults: podDefaults,
  prepareCreate,
  prepareUpdate,
  validate: (draft) => [...validatePod(draft), ...newPodProblems(draft)],
  // Kubernetes looks at the pod itself first, then at what has changed.
  validateUpdate: (draft, stored) => [...validatePod(draft), ...podChangeProblems(draft, stored)],
  hasGeneration: true,
  warnings: ({ metadata }) => {
    const problems = dns1123LabelProblems(metadata.name)
    if (problems.length === 0) return []
    const words =
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
    return [`${words}: [${problems.join(' ')}]`]
  },
  columns: podColumns,
  rowConditions: podRowConditions,
})
