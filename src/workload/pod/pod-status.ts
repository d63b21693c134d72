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
  const { startedAt, isReady, since, end } = state
  const condition = (type: string, isTrue: boolean, at: number, reason?: string) => ({
    type,
    status: isTrue ? 'True' : 'False',
    lastProbeTime: null,
    lastTransitionTime: kubeTime(at),
    ...(reason !== undefined && { reason }),
  })
  const why = end ? endReason(end) : isReady ? undefined : 'ContainersNotReady'
  return {
    phase: end ? (end.exitCode === 0 ? 'Succeeded' : 'Failed') : 'Running',
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
        started: end === undefined,
        restartCount: 0,
        lastState: {},
        state: end
          ? { terminated: terminated(end, startedAt, since) }
          : { running: { startedAt: kubeTime(startedAt) } },
      },
    ],
  }
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
