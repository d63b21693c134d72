import { isDeepStrictEqual } from 'node:util'
import type { Informer } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  isRecord,
  type Logger,
  wellKnownKinds,
  withinTime,
} from '../../core/index.ts'
import { addonAudience } from '../token/claims.ts'
import type { AudienceList } from './audiences.ts'

/** Which Pod this is, and where its Services are read. */
export interface ServiceAudienceOptions {
  readonly view: ClusterView
  readonly namespace: string
  /** The Pod whose labels count. */
  readonly podName: string
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** How long the last list counts while the cluster does not confirm it. */
  readonly maxAgeMs?: number
}

type Labels = Readonly<Record<string, unknown>>

/** A Service and its selector, or the Pod and its labels. */
interface Labelled {
  readonly name: string
  readonly labels: Labels
}

const defaultMaxAgeMs = 5 * 60_000
const checkEveryMs = 1_000
/** An open watch that is silent for so long is confirmed by a list. */
const maxSilenceMs = 60_000
const confirmTimeoutMs = 10_000
const minConfirmIntervalMs = 5_000

/**
 * The Services that select this Pod: a Service that comes or goes, or a label that changes, counts at once. While the
 * cluster does not confirm the list, it counts for a while and then nothing does.
 */
export class ServiceAudiences implements AudienceList {
  readonly #options: ServiceAudienceOptions
  readonly #maxAgeMs: number
  #services: ConfirmedInformer | undefined
  #pod: ConfirmedInformer | undefined
  #audiences: ReadonlySet<string> = new Set()
  #isSynced = false

  constructor(options: ServiceAudienceOptions) {
    this.#options = options
    this.#maxAgeMs = options.maxAgeMs ?? defaultMaxAgeMs
  }

  /** Starts the informers; the list counts once both the Pod and its Services are known. */
  async start(): Promise<void> {
    // Loaded here, so that a guard with a fixed list does not load the client of the API server.
    const { createInformer } = await import('../../client/index.ts')
    const { namespace, podName, signal } = this.#options
    const options = { ...this.#options, equals: isDeepStrictEqual }
    const services = createInformer<Labelled>({
      ...options,
      kind: wellKnownKinds.service,
      query: { namespace },
      project: ({ metadata, spec }) => ({ name: metadata.name, labels: selectorOf(spec) }),
    })
    const pod = createInformer<Labelled>({
      ...options,
      kind: wellKnownKinds.pod,
      query: { namespace, fieldSelector: `metadata.name=${podName}` },
      project: ({ metadata }) => ({ name: metadata.name, labels: metadata.labels ?? {} }),
    })
    for (const informer of [services, pod]) informer.onChange(() => this.#combine(services, pod))
    this.#services = new ConfirmedInformer(services, this.#options)
    this.#pod = new ConfirmedInformer(pod, this.#options)
    Promise.all([services.synced, pod.synced]).then(
      () => {
        this.#isSynced = true
      },
      () => {}, // ended before that
    )
    const timer = setInterval(() => this.#confirm(), checkEveryMs).unref()
    signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  get problem(): AudienceList['problem'] {
    const [services, pod] = [this.#services, this.#pod]
    if (!this.#isSynced || !services || !pod) return 'audiences-unknown'
    if (!pod.informer.get(this.#podKey)) return 'audiences-unknown'
    const confirmedAt = Math.min(services.informer.confirmedAt, pod.informer.confirmedAt)
    const age = this.#options.clock.monotonic() - confirmedAt
    return age > this.#maxAgeMs ? 'audiences-stale' : undefined
  }

  has(audience: string): boolean {
    return this.#audiences.has(audience)
  }

  /** The sorted list, for logs. */
  get names(): readonly string[] {
    return [...this.#audiences].sort()
  }

  get #podKey() {
    return { namespace: this.#options.namespace, name: this.#options.podName }
  }

  /** Early enough for several attempts before the list is stale. */
  #confirm(): void {
    const silenceMs = Math.min(maxSilenceMs, this.#maxAgeMs / 3)
    for (const each of [this.#services, this.#pod]) each?.confirm(silenceMs)
  }

  #combine(services: Informer<Labelled>, pod: Informer<Labelled>): void {
    const { labels = {} } = pod.get(this.#podKey) ?? {}
    const found = new Set<string>()
    for (const { name, labels: selector } of services.list()) {
      const wanted = Object.entries(selector)
      // A Service without a selector selects nothing, not everything.
      const selects = wanted.length > 0 && wanted.every(([key, value]) => labels[key] === value)
      if (selects) found.add(addonAudience(this.#options.namespace, name))
    }
    const changed =
      found.size !== this.#audiences.size || [...found].some((name) => !this.has(name))
    this.#audiences = found
    if (changed) this.#options.log.info({ audiences: this.names }, 'the Services of this Pod')
  }
}

/** Confirms a cache now and then: an open watch alone confirms nothing, since a dead network leaves it open. */
class ConfirmedInformer {
  readonly informer: Informer<Labelled>
  readonly #options: ServiceAudienceOptions
  #requestedAt = Number.NEGATIVE_INFINITY
  #isConfirming = false

  constructor(informer: Informer<Labelled>, options: ServiceAudienceOptions) {
    this.informer = informer
    this.#options = options
  }

  /** Lists again if nothing was heard for so long. */
  confirm(silenceMs: number): void {
    const { clock, log, signal } = this.#options
    const now = clock.monotonic()
    const isDue = now - this.informer.confirmedAt >= silenceMs
    if (!isDue || this.#isConfirming || now - this.#requestedAt < minConfirmIntervalMs) return
    this.#requestedAt = now
    this.#isConfirming = true
    withinTime(confirmTimeoutMs, signal, (within) => this.informer.confirm(silenceMs, within))
      .catch((err: unknown) => {
        if (!signal.aborted) log.warn({ err }, 'the Services of this Pod cannot be confirmed')
      })
      .finally(() => {
        this.#isConfirming = false
      })
  }
}

const selectorOf = (spec: unknown): Labels =>
  isRecord(spec) && isRecord(spec['selector']) ? spec['selector'] : {}
