import { isRecord, type KubeObject } from '../../../core/index.ts'
import { timeSince } from '../define-kind.ts'
import { type Fields, fieldsAt, flagAt, numberAt, recordsAt, textAt } from '../fields.ts'

/** What `kubectl get pods` says about the containers of a pod. */
export interface PodState {
  readonly ready: number
  readonly total: number
  readonly reason: string
  readonly restarts: number
  /** When a container was last restarted; empty when none was. */
  readonly lastRestart: string
}

interface Tally {
  ready: number
  reason: string
  restarts: number
  lastRestart: string
}

const stateOf = (status: Fields, phase: string): Fields | undefined => {
  const found = fieldsAt(status, 'state')[phase]
  return isRecord(found) ? found : undefined
}

const isSidecar = (container: Fields | undefined): boolean =>
  container?.['restartPolicy'] === 'Always'

function countRestarts(tally: Pick<Tally, 'restarts' | 'lastRestart'>, status: Fields): void {
  tally.restarts += numberAt(status, 'restartCount') ?? 0
  const finished = textAt(fieldsAt(fieldsAt(status, 'lastState'), 'terminated'), 'finishedAt')
  if (finished > tally.lastRestart) tally.lastRestart = finished
}

function exitReason(terminated: Fields): string {
  const reason = textAt(terminated, 'reason')
  if (reason) return reason
  const signal = numberAt(terminated, 'signal') ?? 0
  return signal ? `Signal:${signal}` : `ExitCode:${numberAt(terminated, 'exitCode') ?? 0}`
}

/** Why an init container is not done yet; `undefined` when it is. */
function initReason(status: Fields, position: string): string | undefined {
  const terminated = stateOf(status, 'terminated')
  if (terminated)
    return (numberAt(terminated, 'exitCode') ?? 0) === 0 ? undefined : exitReason(terminated)
  const waiting = textAt(stateOf(status, 'waiting') ?? {}, 'reason')
  return waiting && waiting !== 'PodInitializing' ? waiting : position
}

/** Looks at the init containers in their order; true when one of them is not done yet. */
function tallyInit(
  pod: KubeObject,
  tally: Tally,
  sidecars: Pick<Tally, 'restarts' | 'lastRestart'>,
): boolean {
  const specs = recordsAt(fieldsAt(pod, 'spec'), 'initContainers')
  const byName = new Map(specs.map((container) => [textAt(container, 'name'), container]))
  const statuses = recordsAt(fieldsAt(pod, 'status'), 'initContainerStatuses')
  for (const [index, status] of statuses.entries()) {
    const sidecar = isSidecar(byName.get(textAt(status, 'name')))
    countRestarts(tally, status)
    if (sidecar) countRestarts(sidecars, status)
    const reason = initReason(status, `${index}/${specs.length}`)
    if (reason === undefined) continue
    if (sidecar && flagAt(status, 'started')) {
      if (flagAt(status, 'ready')) tally.ready += 1
      continue
    }
    tally.reason = `Init:${reason}`
    return true
  }
  return false
}

const hasCondition = (pod: KubeObject, type: string): boolean =>
  recordsAt(fieldsAt(pod, 'status'), 'conditions').find((one) => one['type'] === type)?.[
    'status'
  ] === 'True'

function tallyContainer(status: Fields, tally: Tally): { running: boolean; error: string } {
  countRestarts(tally, status)
  const waiting = textAt(stateOf(status, 'waiting') ?? {}, 'reason')
  const terminated = stateOf(status, 'terminated')
  if (waiting) tally.reason = waiting
  else if (terminated) {
    tally.reason = exitReason(terminated)
    const failed = (numberAt(terminated, 'exitCode') ?? 0) !== 0
    return { running: false, error: failed ? tally.reason : '' }
  } else if (flagAt(status, 'ready') && stateOf(status, 'running')) {
    tally.ready += 1
    return { running: true, error: '' }
  }
  return { running: false, error: '' }
}

function tallyContainers(pod: KubeObject, tally: Tally): void {
  let [isRunning, error] = [false, '']
  for (const status of recordsAt(fieldsAt(pod, 'status'), 'containerStatuses').reverse()) {
    const outcome = tallyContainer(status, tally)
    isRunning ||= outcome.running
    error = outcome.error || error
  }
  if (tally.reason !== 'Completed') return
  if (isRunning && hasCondition(pod, 'Ready')) tally.reason = 'Running'
  else if (error) tally.reason = error
  else if (isRunning) tally.reason = 'NotReady'
}

function deletionReason(pod: KubeObject, reason: string): string {
  if (pod.metadata.deletionTimestamp === undefined) return reason
  const status = fieldsAt(pod, 'status')
  if (status['reason'] === 'NodeLost') return 'Unknown'
  return ['Failed', 'Succeeded'].includes(textAt(status, 'phase')) ? reason : 'Terminating'
}

function startingReason(pod: KubeObject): string {
  const status = fieldsAt(pod, 'status')
  const isGated = recordsAt(status, 'conditions').some(
    (one) => one['type'] === 'PodScheduled' && one['reason'] === 'SchedulingGated',
  )
  return isGated ? 'SchedulingGated' : textAt(status, 'reason') || textAt(status, 'phase')
}

/** Sums up the containers of a pod. */
export function podState(pod: KubeObject): PodState {
  const spec = fieldsAt(pod, 'spec')
  const tally: Tally = { ready: 0, reason: startingReason(pod), restarts: 0, lastRestart: '' }
  const sidecars = { restarts: 0, lastRestart: '' }
  const isInitializing = tallyInit(pod, tally, sidecars)
  if (!isInitializing || hasCondition(pod, 'Initialized')) {
    Object.assign(tally, sidecars)
    tallyContainers(pod, tally)
  }
  const total =
    recordsAt(spec, 'containers').length +
    recordsAt(spec, 'initContainers').filter(isSidecar).length
  return { ...tally, total, reason: deletionReason(pod, tally.reason) }
}

/** The restarts, and how long ago the last one was. */
export function shownRestarts(pod: KubeObject, now: number): string {
  const { restarts, lastRestart } = podState(pod)
  if (restarts === 0 || lastRestart === '') return String(restarts)
  return `${restarts} (${timeSince(lastRestart, now)} ago)`
}
