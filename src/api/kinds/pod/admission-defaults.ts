import { type Fields, isUnset, recordsAt, textAt } from '../fields.ts'

/** How long a pod stays on a node that has gone quiet. */
const evictionSeconds = 300
const quietTaints = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']

const tolerates = (toleration: Fields, key: string): boolean =>
  [key, ''].includes(textAt(toleration, 'key')) &&
  ['NoExecute', ''].includes(textAt(toleration, 'effect'))

/** What Kubernetes' default admission adds: patience with quiet nodes. */
export function addTolerations(spec: Fields): void {
  const tolerations = recordsAt(spec, 'tolerations')
  const missing = quietTaints.filter(
    (key) => !tolerations.some((toleration) => tolerates(toleration, key)),
  )
  if (missing.length === 0) return
  spec['tolerations'] = [
    ...tolerations,
    ...missing.map((key) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: evictionSeconds,
    })),
  ]
}

/** What Kubernetes' default admission adds: the priority of pods without a class of their own. */
export function addPriority(spec: Fields): void {
  if (isUnset(spec['priority'])) spec['priority'] = 0
  if (isUnset(spec['preemptionPolicy'])) spec['preemptionPolicy'] = 'PreemptLowerPriority'
}
