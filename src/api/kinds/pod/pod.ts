import { type KubeObject, kubeTime, wellKnownKinds } from '../../../core/index.ts'
import { dns1123LabelProblems } from '../../validation/names.ts'
import {
  ageColumn,
  type Column,
  column,
  defineKind,
  nameColumn,
  type RowCondition,
  type WriteContext,
  wideColumn,
} from '../define-kind.ts'
import {
  carryOver,
  ensureFields,
  type Fields,
  fieldsAt,
  flagAt,
  isUnset,
  recordsAt,
  textAt,
} from '../fields.ts'
import { addPriority, addTolerations, podDefaults, qosClassOf } from './defaults.ts'
import { newPodProblems, validatePod } from './rules.ts'
import { podState, shownRestarts } from './state.ts'
import { podChangeProblems, podStatusProblems } from './update-rules.ts'

const statusOf = (pod: KubeObject) => fieldsAt(pod, 'status')

function readinessGates(pod: KubeObject): string {
  const gates = recordsAt(fieldsAt(pod, 'spec'), 'readinessGates')
  if (gates.length === 0) return '<none>'
  const conditions = recordsAt(statusOf(pod), 'conditions')
  const open = gates.filter((gate) => {
    const found = conditions.find((condition) => condition['type'] === gate['conditionType'])
    return found?.['status'] === 'True'
  })
  return `${open.length}/${gates.length}`
}

/** The address of a pod, empty when it has none. */
function podIpOf(pod: KubeObject): string {
  const first = recordsAt(statusOf(pod), 'podIPs')[0]
  return first ? textAt(first, 'ip') : textAt(statusOf(pod), 'podIP')
}

/** What `kubectl get pods` shows. */
const podColumns: readonly Column[] = [
  nameColumn,
  column('Ready', 'Containers that are ready, of all.', (pod) => {
    const { ready, total } = podState(pod)
    return `${ready}/${total}`
  }),
  column('Status', 'What the pod is doing.', (pod) => podState(pod).reason),
  column('Restarts', 'How often containers were restarted, and when last.', shownRestarts),
  ageColumn,
  wideColumn('IP', 'Address of the pod.', (pod) => podIpOf(pod) || '<none>'),
  wideColumn(
    'Node',
    'Node that the pod runs on.',
    (pod) => textAt(fieldsAt(pod, 'spec'), 'nodeName') || '<none>',
  ),
  wideColumn(
    'Nominated Node',
    'Node that is being cleared for the pod.',
    (pod) => textAt(statusOf(pod), 'nominatedNodeName') || '<none>',
  ),
  wideColumn('Readiness Gates', 'Extra conditions that hold, of all.', readinessGates),
]

const completed = (reason: string, message: string): RowCondition => ({
  type: 'Completed',
  status: 'True',
  reason,
  message,
})

/** Marks the rows of pods that have come to their end. */
function podRowConditions(pod: KubeObject): RowCondition[] {
  switch (textAt(statusOf(pod), 'phase')) {
    case 'Succeeded':
      return [completed('Succeeded', 'The pod has completed successfully.')]
    case 'Failed':
      return [completed('Failed', 'The pod failed.')]
    default:
      return []
  }
}

const specOf = (object: KubeObject): Fields => fieldsAt(object, 'spec')
const statusOf_pod = (object: KubeObject): Fields => fieldsAt(object, 'status')

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
  if (isUnset(status['qosClass'])) carryOver(status, statusOf_pod(stored), 'qosClass')
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
    'status.phase': (object) => textAt(statusOf_pod(object), 'phase'),
    'status.podIP': podIpOf,
    'status.podIPs': podIpOf,
    'status.nominatedNodeName': (object) => textAt(statusOf_pod(object), 'nominatedNodeName'),
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
