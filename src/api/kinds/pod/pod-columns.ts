import type { KubeObject } from '../../../core/index.ts'
import { ageColumn, column, nameColumn, wideColumn } from '../columns.ts'
import { fieldsAt, recordsAt, textAt } from '../fields.ts'
import type { Column, RowCondition } from '../kind-definition.ts'
import { podState, shownRestarts } from './pod-state.ts'

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
export function podIpOf(pod: KubeObject): string {
  const first = recordsAt(statusOf(pod), 'podIPs')[0]
  return first ? textAt(first, 'ip') : textAt(statusOf(pod), 'podIP')
}

/** What `kubectl get pods` shows. */
export const podColumns: readonly Column[] = [
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
export function podRowConditions(pod: KubeObject): RowCondition[] {
  switch (textAt(statusOf(pod), 'phase')) {
    case 'Succeeded':
      return [completed('Succeeded', 'The pod has completed successfully.')]
    case 'Failed':
      return [completed('Failed', 'The pod failed.')]
    default:
      return []
  }
}
