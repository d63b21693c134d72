import {
  type Clock,
  type ClusterView,
  hasReason,
  isRecord,
  type KubeObject,
  kubeMicroTime,
  type Logger,
  pause,
  wellKnownKinds,
} from '../../core/index.ts'
import { isValidLease, type LeaseAnswer, leaseAnswer, leasesAnswered } from '../lease-validity.ts'
import type { ServerMetrics } from './metrics.ts'

const durationSeconds = 30
const periodMs = 15_000

/** What a server's lease is made of. */
export interface ServerLeaseParts {
  readonly view: ClusterView
  readonly serverId: string
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
  readonly metrics: ServerMetrics
  readonly clock: Clock
  readonly log: Logger
}

/** Keeps this server's Lease fresh, so that agents can count servers, and removes those that have expired. */
export class ServerLease {
  readonly #parts: ServerLeaseParts
  readonly #name: string
  readonly #stop = new AbortController()
  #running: Promise<void> | undefined

  constructor(parts: ServerLeaseParts) {
    this.#parts = parts
    this.#name = `konnectivity-proxy-server-${parts.serverId}`
  }

  /** Begins; a cluster that cannot be reached is tried again and holds up nobody. */
  start(): void {
    this.#running ??= this.#run(this.#stop.signal)
  }

  /** Ends, and takes the Lease away unless `deadline` aborts first. */
  async stop(deadline: AbortSignal): Promise<void> {
    if (this.#stop.signal.aborted) return
    this.#stop.abort()
    await this.#running
    if (!this.#running) return
    const { view, log } = this.#parts
    try {
      await view.write('delete', this.#draft(), {}, deadline)
    } catch (err) {
      if (!hasReason(err, 'NotFound')) {
        log.warn({ err, lease: this.#name }, 'the lease could not be removed')
      }
    }
  }

  /** Acquires or renews the Lease once. */
  async renew(signal: AbortSignal): Promise<void> {
    const { view, namespace, labels } = this.#parts
    const found = await view.get(wellKnownKinds.lease, { namespace, name: this.#name }, signal)
    if (!found) {
      await view.write('create', this.#draft(), {}, signal)
      return
    }
    const spec = isRecord(found['spec']) ? found['spec'] : {}
    const next: KubeObject = {
      ...found,
      metadata: { ...found.metadata, labels: { ...found.metadata.labels, ...labels } },
      spec: { ...spec, ...this.#held(), ...(spec['acquireTime'] ? {} : this.#acquired()) },
    }
    await view.write('update', next, {}, signal)
  }

  /** Removes Leases with our labels that have expired, unless they were renewed meanwhile. */
  async collect(signal: AbortSignal): Promise<void> {
    const { view, namespace, labels, metrics, clock } = this.#parts
    const labelSelector = Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(',')
    const { items } = await this.#measured(metrics.leaseLists, metrics.leaseListLatency, () =>
      view.list(wellKnownKinds.lease, { namespace, labelSelector }, signal),
    )
    for (const lease of items.filter((item) => !isValidLease(item, clock.now()))) {
      await this.#cull(lease, signal)
    }
  }

  async #cull(lease: KubeObject, signal: AbortSignal): Promise<void> {
    const { view, metrics, log } = this.#parts
    const { resourceVersion, name } = lease.metadata
    try {
      await this.#measured(metrics.leaseDeletes, metrics.leaseDeleteLatency, () =>
        view.write('delete', lease, { ...(resourceVersion && { resourceVersion }) }, signal),
      )
      metrics.culledLeases.inc()
      log.info({ lease: name }, 'expired lease removed')
    } catch (err) {
      if (!hasReason(err, 'NotFound')) log.warn({ err, lease: name }, 'expired lease not removed')
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { log } = this.#parts
    while (!signal.aborted) {
      for (const step of [() => this.renew(signal), () => this.collect(signal)]) {
        await step().catch((err: unknown) => {
          if (!signal.aborted) log.warn({ err, lease: this.#name }, 'looking after leases failed')
        })
      }
      await pause(periodMs, signal)
    }
  }

  #draft(): KubeObject {
    const { namespace, labels } = this.#parts
    return {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: this.#name, namespace, labels: { ...labels } },
      spec: { ...this.#held(), ...this.#acquired() },
    }
  }

  #held(): Record<string, unknown> {
    const { serverId, clock } = this.#parts
    return {
      holderIdentity: serverId,
      leaseDurationSeconds: durationSeconds,
      renewTime: kubeMicroTime(clock.now()),
    }
  }

  #acquired(): Record<string, unknown> {
    return { acquireTime: kubeMicroTime(this.#parts.clock.now()) }
  }

  async #measured<Result>(
    calls: ServerMetrics['leaseLists'],
    latency: ServerMetrics['leaseListLatency'],
    call: () => Promise<Result>,
  ): Promise<Result> {
    const { clock } = this.#parts
    const begun = clock.monotonic()
    const count = ({ code, reason }: LeaseAnswer): void => {
      calls.with(String(code), reason).inc()
      latency.with(String(code)).observe((clock.monotonic() - begun) / 1_000)
    }
    try {
      const result = await call()
      count(leasesAnswered)
      return result
    } catch (error) {
      count(leaseAnswer(error))
      throw error
    }
  }
}
