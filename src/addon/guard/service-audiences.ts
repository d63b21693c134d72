import {
  type Clock,
  type ClusterView,
  isRecord,
  type KubeObject,
  type Logger,
  wellKnownKinds,
} from '../../core/index.ts'
import { addonAudience } from '../token/claims.ts'
import type { AudienceList } from './audiences.ts'
import { ConfirmedFollowing } from './confirmed-following.ts'

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
const longestSilenceMs = 60_000

/**
 * The Services that select this Pod, watched: a Service that comes or goes, or a label that changes, counts at
 * once. When the cluster cannot be asked, the last list holds for a while and then none does.
 */
export class ServiceAudiences implements AudienceList {
  readonly #options: ServiceAudienceOptions
  readonly #maxAgeMs: number
  /** Selectors by Service. */
  readonly #services: ConfirmedFollowing<Labels>
  /** The labels of the Pod by its name. */
  readonly #pod: ConfirmedFollowing<Labels>
  #audiences: ReadonlySet<string> = new Set()
  #isSynced = false

  constructor(options: ServiceAudienceOptions) {
    const { namespace, podName, maxAgeMs = defaultMaxAgeMs } = options
    const changed = (): void => this.#combine()
    this.#options = options
    this.#maxAgeMs = maxAgeMs
    this.#services = new ConfirmedFollowing({
      ...options,
      changed,
      kind: wellKnownKinds.service,
      query: { namespace },
      factOf: selectorOf,
    })
    this.#pod = new ConfirmedFollowing({
      ...options,
      changed,
      kind: wellKnownKinds.pod,
      query: { namespace, fieldSelector: `metadata.name=${podName}` },
      factOf: ({ metadata }): Labels => metadata.labels ?? {},
    })
  }

  /** Begins to watch; the list counts once both the Pod and its Services were seen. */
  async start(): Promise<void> {
    const { signal } = this.#options
    const followings = await Promise.all([this.#services.start(), this.#pod.start()])
    Promise.all(followings.map(({ synced }) => synced))
      .then(() => {
        this.#isSynced = true
      })
      .catch(() => {}) // only when it ends before that
    const timer = setInterval(() => this.#look(), lookEveryMs).unref()
    signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  get problem(): AudienceList['problem'] {
    if (!this.#isSynced || this.#pod.facts.size === 0) return 'audiences-unknown'
    const confirmedAt = Math.min(this.#services.confirmedAt, this.#pod.confirmedAt)
    const age = this.#options.clock.monotonic() - confirmedAt
    return age > this.#maxAgeMs ? 'audiences-stale' : undefined
  }

  has(audience: string): boolean {
    return this.#audiences.has(audience)
  }

  /** The list, for people. */
  get names(): readonly string[] {
    return [...this.#audiences].sort()
  }

  /** Early enough for several attempts before the list is too old. */
  #look(): void {
    const afterMs = Math.min(longestSilenceMs, this.#maxAgeMs / 3)
    for (const each of [this.#services, this.#pod]) each.confirm(afterMs)
  }

  #combine(): void {
    const labels = this.#pod.facts.get(this.#options.podName) ?? {}
    const found = new Set<string>()
    for (const [name, selector] of this.#services.facts) {
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

const selectorOf = ({ spec }: KubeObject): Labels =>
  isRecord(spec) && isRecord(spec['selector']) ? spec['selector'] : {}
