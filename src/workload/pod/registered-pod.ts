import { createInformer, type KubeClient, RemoteClusterView } from '../../client/index.ts'
import {
  ApiError,
  type Clock,
  CommandFailed,
  hasReason,
  type KubeObject,
  kubeMicroTime,
  type Logger,
  wellKnownKinds,
  workloadMark,
} from '../../core/index.ts'
import { type ProcessState, podObject, podStatus, type WorkloadPlan } from './pod-object.ts'

const { pod: podKind, lease: leaseKind } = wellKnownKinds
const maxAttempts = 5

/** What a registered Pod works with. */
export interface PodParts {
  readonly client: KubeClient
  readonly clock: Clock
  readonly log: Logger
  /** How long the Pod stays when nothing is heard of its workload any more. */
  readonly leaseMs: number
}

/** The Pod of a workload in the cluster, and the Lease that shows that it is alive. */
export class RegisteredPod {
  readonly uid: string
  readonly #plan: WorkloadPlan
  readonly #parts: PodParts
  #lease: KubeObject | undefined

  private constructor(plan: WorkloadPlan, parts: PodParts, uid: string) {
    this.#plan = plan
    this.#parts = parts
    this.uid = uid
  }

  /** Registers a workload. */
  static async create(
    plan: WorkloadPlan,
    parts: PodParts,
    signal: AbortSignal,
  ): Promise<RegisteredPod> {
    const { metadata } = await parts.client
      .create(podKind, podObject(plan), {}, signal)
      .catch((cause: unknown) => {
        throw hasReason(cause, 'AlreadyExists') ? taken(plan, cause) : cause
      })
    return new RegisteredPod(plan, parts, metadata.uid ?? '')
  }

  /** Writes what is known of the process into the Pod's status. */
  async report(state: ProcessState, signal: AbortSignal): Promise<void> {
    const { client } = this.#parts
    for (let attempt = 1; ; attempt++) {
      const present = await client.get(podKind, this.#key, signal)
      if (present?.metadata.uid !== this.uid) return
      const status = { ...present, status: podStatus(this.#plan, state) }
      try {
        await client.update(podKind, status, { subresource: 'status' }, signal)
        return
      } catch (error) {
        // Others may have put a label on it meanwhile.
        if (!hasReason(error, 'Conflict') || attempt === maxAttempts) throw error
      }
    }
  }

  /** Shows that the workload is alive. */
  async renew(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#parts
    for (let attempt = 1; ; attempt++) {
      const lease = this.#leaseAt(clock.now())
      try {
        this.#lease = this.#lease
          ? await client.update(leaseKind, lease, {}, signal)
          : await client.create(leaseKind, lease, {}, signal)
        return
      } catch (error) {
        // Somebody has deleted it, or a write of ours arrived whose answer did not.
        const isAside = hasReason(error, 'NotFound', 'Conflict', 'AlreadyExists')
        if (!isAside || attempt === maxAttempts) throw error
        this.#lease = await client.get(leaseKind, this.#key, signal)
      }
    }
  }

  /** Calls `onGone` when the Pod is deleted. Resolves when the signal has aborted. */
  watch(onGone: () => void, signal: AbortSignal): Promise<void> {
    const { client, log, clock } = this.#parts
    const view = new RemoteClusterView(client)
    const { namespace, name, machine } = this.#plan
    const query = { namespace, fieldSelector: `metadata.name=${name},spec.nodeName=${machine}` }
    const informer = createInformer({ view, kind: podKind, query, log, clock, signal })
    const check = (): void => {
      const found = informer.get(this.#key)?.metadata
      if (found?.uid !== this.uid || found.deletionTimestamp !== undefined) onGone()
    }
    informer.onChange(check)
    informer.synced.then(check, () => {}) // it may have been deleted before the first list
    return informer.ended
  }

  /** Takes the workload out of the cluster. */
  async remove(signal: AbortSignal): Promise<void> {
    const { client } = this.#parts
    await gone(client.delete(podKind, this.#key, { uid: this.uid }, signal))
    const { uid } = this.#lease?.metadata ?? {}
    if (uid !== undefined) await gone(client.delete(leaseKind, this.#key, { uid }, signal))
  }

  get #key() {
    return { namespace: this.#plan.namespace, name: this.#plan.name }
  }

  #leaseAt(now: number): KubeObject {
    const { machine, name } = this.#plan
    const owner = { apiVersion: 'v1', kind: 'Pod', name, uid: this.uid }
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        ...(this.#lease?.metadata ?? this.#key),
        labels: { [workloadMark]: machine },
        ownerReferences: [owner],
      },
      spec: {
        holderIdentity: this.uid,
        leaseDurationSeconds: Math.ceil(this.#parts.leaseMs / 1_000),
        renewTime: kubeMicroTime(now),
      },
    }
  }
}

async function gone(deletion: Promise<unknown>): Promise<void> {
  await deletion.catch((error: unknown) => {
    if (!hasReason(error, 'NotFound', 'Conflict')) throw error
  })
}

function taken({ namespace, name }: WorkloadPlan, cause: unknown): CommandFailed {
  return new CommandFailed('POD_EXISTS', `there is a Pod ${name} in namespace ${namespace}`, {
    cause,
    hint: 'one of a workload that was killed goes by itself within a minute; choose another --name otherwise',
  })
}

/** Tells the cluster where the process will be, before it runs: one that cannot be reached there need not start. */
export async function claimAddress(
  pod: Pick<RegisteredPod, 'report'>,
  ip: string,
  { clock, drain }: { readonly clock: Clock; readonly drain: AbortSignal },
): Promise<void> {
  const now = clock.now()
  const state = { startedAt: now, isPending: true, isReady: false, since: now } as const
  await pod.report(state, drain).catch((error: unknown) => {
    throw isAbout(ip, error) ? refused(ip, error) : error
  })
}

const isAbout = (ip: string, error: unknown): error is ApiError =>
  error instanceof ApiError &&
  hasReason(error, 'Forbidden', 'Invalid') &&
  error.message.includes(ip)

const refused = (ip: string, cause: ApiError): CommandFailed =>
  new CommandFailed(
    'POD_IP_REFUSED',
    `the cluster does not take ${ip} for the address of this workload: ${cause.message}`,
    { hint: 'give one of this machine at which the cluster reaches it: --pod-ip IP', cause },
  )
