import { kubeTime } from '../../core/index.ts'
import { localImage } from './pod-object.ts'
import type { WorkloadPlan } from './workload-plan.ts'

/** How a process has ended. */
export interface ProcessEnd {
  readonly exitCode: number
  /** The number of the signal that ended it, if one did. */
  readonly signal?: number
}

/** What the status of a Pod tells of its process. */
export interface ProcessState {
  readonly startedAt: number
  /** It is about to start. */
  readonly isPending?: true
  /** Accepts connections, as far as it is known to serve. */
  readonly isReady: boolean
  /** Since when it is, or is not. */
  readonly since: number
  readonly end?: ProcessEnd
}

/** The status of a workload's Pod, as a kubelet would write it. */
export function podStatus(
  { container, ip }: WorkloadPlan,
  state: ProcessState,
): Record<string, unknown> {
  const { startedAt, isPending = false, isReady, since, end } = state
  const condition = (type: string, isTrue: boolean, at: number, reason?: string) => ({
    type,
    status: isTrue ? 'True' : 'False',
    lastProbeTime: null,
    lastTransitionTime: kubeTime(at),
    ...(reason !== undefined && { reason }),
  })
  const why = end ? endReason(end) : isReady ? undefined : 'ContainersNotReady'
  return {
    phase: phaseOf(state),
    hostIP: ip,
    hostIPs: [{ ip }],
    podIP: ip,
    podIPs: [{ ip }],
    startTime: kubeTime(startedAt),
    conditions: [
      condition('PodScheduled', true, startedAt),
      condition('Initialized', true, startedAt),
      condition('ContainersReady', isReady, since, why),
      condition('Ready', isReady, since, why),
    ],
    containerStatuses: [
      {
        name: container,
        image: localImage,
        imageID: '',
        ready: isReady,
        started: end === undefined && !isPending,
        restartCount: 0,
        lastState: {},
        state: containerState(state),
      },
    ],
  }
}

function phaseOf({ isPending, end }: ProcessState): string {
  if (end) return end.exitCode === 0 ? 'Succeeded' : 'Failed'
  return isPending ? 'Pending' : 'Running'
}

function containerState({ startedAt, isPending, since, end }: ProcessState): object {
  if (end) return { terminated: terminated(end, startedAt, since) }
  return isPending
    ? { waiting: { reason: 'ContainerCreating' } }
    : { running: { startedAt: kubeTime(startedAt) } }
}

const endReason = ({ exitCode }: ProcessEnd): string =>
  exitCode === 0 ? 'PodCompleted' : 'PodFailed'

const terminated = ({ exitCode, signal }: ProcessEnd, startedAt: number, endedAt: number) => ({
  exitCode,
  ...(signal !== undefined && { signal }),
  reason: exitCode === 0 ? 'Completed' : 'Error',
  startedAt: kubeTime(startedAt),
  finishedAt: kubeTime(endedAt),
})
