import { type KubeObject, kubeTime, workloadMark } from '../../core/index.ts'
import type { TokenFile } from '../directory/token-set.ts'

/** A port that the process serves. */
export interface WorkloadPort {
  readonly name?: string
  readonly port: number
}

/** Everything about a workload that its Pod says. */
export interface WorkloadPlan {
  readonly machine: string
  readonly namespace: string
  readonly name: string
  readonly serviceAccount: string
  readonly labels: Readonly<Record<string, string>>
  /** The container's name. */
  readonly container: string
  readonly ip: string
  readonly ports: readonly WorkloadPort[]
  readonly tokens: readonly TokenFile[]
  readonly tokenSeconds: number
}

/** Where in-cluster clients look for their service account. */
export const serviceAccountPath = '/var/run/secrets/kubernetes.io/serviceaccount'

/** What stands where a Pod names the image of its container. */
const localImage = 'sallyport.dev/local-process'

const rootCa = 'kube-root-ca.crt'

/** The volume as the API server's admission would have added it, and a file for each further audience. */
const volumeOf = ({ tokens, tokenSeconds }: WorkloadPlan) => ({
  name: 'kube-api-access',
  projected: {
    sources: [
      ...tokens.map(({ file: path, audience }) => ({
        serviceAccountToken: {
          path,
          expirationSeconds: tokenSeconds,
          ...(audience !== undefined && { audience }),
        },
      })),
      { configMap: { name: rootCa, items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [
            { path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } },
          ],
        },
      },
    ],
  },
})

/** The Pod of a workload. The command is not in it: its words may be nobody's business. */
export function podObject(plan: WorkloadPlan): KubeObject {
  const [first] = plan.ports
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: plan.name,
      namespace: plan.namespace,
      labels: { ...plan.labels, [workloadMark]: plan.machine },
    },
    spec: {
      nodeName: plan.machine,
      serviceAccountName: plan.serviceAccount,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: 'Never',
      volumes: [volumeOf(plan)],
      containers: [
        {
          name: plan.container,
          image: localImage,
          imagePullPolicy: 'Never',
          ports: plan.ports.map(({ name, port }) => ({
            containerPort: port,
            ...(name !== undefined && { name }),
          })),
          ...(first && { readinessProbe: { tcpSocket: { port: first.port } } }),
          volumeMounts: [
            { name: 'kube-api-access', mountPath: serviceAccountPath, readOnly: true },
          ],
        },
      ],
    },
  }
}

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
