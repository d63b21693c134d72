import type { Following } from '../../client/index.ts'
import {
  type Clock,
  type ClusterView,
  isRecord,
  type KubeObject,
  type Logger,
  wellKnownKinds,
} from '../../core/index.ts'
import { addonAudience } from '../token/profile.ts'
import type { AudienceList } from './audiences.ts'

/** Which Pod this is, and how the cluster is asked about it. */
export interface ServiceAudienceOptions {
  readonly view: ClusterView
  readonly namespace: string
  /** The Pod whose labels count; asked for and watched. */
  readonly podName: string
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  /** How long the last list is believed while the cluster does not answer. */
  readonly maxAgeMs?: number
}

type Labels = Readonly<Record<string, unknown>>

const defaultMaxAgeMs = 5 * 60_000
const lookEveryMs = 1_000

/**
 * The Services that select this Pod, watched: a Service that comes or goes, or a label that changes, counts at
 * once. When the cluster cannot be asked, the last list holds for a while and then none does.
 */
export class ServiceAudiences implements AudienceList {
  readonly #options: ServiceAudienceOptions
  readonly #selectors = new Map<string, Labels>()
  readonly #followings: Following[] = []
  #labels: Labels | undefined
  #audiences: ReadonlySet<string> = new Set()
  #isSynced = false
  #lastSeen = 0

  constructor(options: ServiceAudienceOptions) {
    this.#options = options
  }

  /** Begins to watch; the list counts once both the Pod and its Services were seen. */
  async start(): Promise<void> {
    // Loaded here, so that a guard with a fixed list does not pay for a client of the API server.
    const { follow } = await import('../../client/index.ts')
    const { view, namespace, podName, log, signal, clock } = this.#options
    const pod = { namespace, fieldSelector: `metadata.name=${podName}` }
    this.#followings.push(
      follow(
        { view, kind: wellKnownKinds.service, query: { namespace }, log, clock },
        this.#services,
        signal,
      ),
      follow({ view, kind: wellKnownKinds.pod, query: pod, log, clock }, this.#pod, signal),
    )
    const synced = Promise.all(this.#followings.map((following) => following.synced))
    synced.then(() => this.#look(true)).catch(() => {}) // only when it ends before that
    const timer = setInterval(() => this.#look(false), lookEveryMs).unref()
    signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  get problem(): AudienceList['problem'] {
    const { clock, maxAgeMs = defaultMaxAgeMs } = this.#options
    if (!this.#isSynced || !this.#labels) return 'audiences-unknown'
    return clock.monotonic() - this.#lastSeen > maxAgeMs ? 'audiences-stale' : undefined
  }

  has(audience: string): boolean {
    return this.#audiences.has(audience)
  }

  /** The list, for people. */
  get names(): readonly string[] {
    return [...this.#audiences].sort()
  }

  #look(isFirst: boolean): void {
    if (isFirst) this.#isSynced = true
    if (isFirst || this.#followings.every(({ watching }) => watching))
      this.#lastSeen = this.#options.clock.monotonic()
  }

  readonly #services = {
    put: ({ metadata, spec }: KubeObject): void => {
      const selector = isRecord(spec) && isRecord(spec['selector']) ? spec['selector'] : {}
      this.#selectors.set(metadata.name, selector)
      this.#combine()
    },
    remove: ({ metadata }: KubeObject): void => {
      this.#selectors.delete(metadata.name)
      this.#combine()
    },
  }

  readonly #pod = {
    put: ({ metadata }: KubeObject): void => {
      this.#labels = metadata.labels ?? {}
      this.#combine()
    },
    remove: (): void => {
      this.#labels = undefined
      this.#combine()
    },
  }

  #combine(): void {
    const labels = this.#labels ?? {}
    const found = new Set<string>()
    for (const [name, selector] of this.#selectors) {
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
