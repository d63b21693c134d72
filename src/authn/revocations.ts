import { createInformer, type Informer } from '../client/index.ts'
import {
  ApiError,
  type Authentication,
  aborted,
  type Clock,
  type ClusterView,
  type Component,
  type KubeObject,
  type Logger,
  neverFails,
  revocationListKey,
  unauthorized,
  wellKnownKinds,
} from '../core/index.ts'
import { ListStaleness, type StalenessOptions } from './revocation-freshness.ts'
import { normalSerial, parseRevocations, type Revocation } from './revocation-list.ts'

interface Entry {
  readonly keys: readonly string[]
  readonly listener: () => void
}

/** Open streams, found by what would revoke them; each is called at most once. */
export class RevocationListeners {
  readonly #byKey = new Map<string, Set<Entry>>()
  readonly #onError: (error: unknown) => void

  /** One that throws must not keep the others from being called. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  add(keys: readonly string[], listener: () => void): () => void {
    const entry = { keys, listener }
    for (const key of keys) {
      const known = this.#byKey.get(key)
      if (known) known.add(entry)
      else this.#byKey.set(key, new Set([entry]))
    }
    return () => this.#remove(entry)
  }

  /** Calls those who wait for one of the keys. */
  call(keys: Iterable<string>): void {
    for (const key of keys) {
      for (const entry of this.#byKey.get(key) ?? []) this.#callOnce(entry)
    }
  }

  callAll(): void {
    this.call([...this.#byKey.keys()])
  }

  #callOnce(entry: Entry): void {
    this.#remove(entry)
    try {
      entry.listener()
    } catch (error) {
      this.#onError(error)
    }
  }

  #remove(entry: Entry): void {
    for (const key of entry.keys) {
      const known = this.#byKey.get(key)
      known?.delete(entry)
      if (known?.size === 0) this.#byKey.delete(key)
    }
  }
}

/** What the list of revoked users and credentials is read with. */
export interface RevocationsOptions {
  readonly view: ClusterView
  readonly clock: Clock
  readonly log: Logger
  /** `never` for a view within this process, which is always up to date. */
  readonly staleness: 'never' | StalenessOptions
}

/** A list of which nothing can be read must not fill the log. */
const maxLoggedProblems = 10

/** Knows which users and credentials are revoked, from `start` to `stop`. A stale list rejects all requests. */
export class Revocations implements Component {
  readonly name = 'revocations'
  readonly failed = neverFails()
  readonly #options: RevocationsOptions
  readonly #log: Logger
  readonly #stop = new AbortController()
  readonly #listeners: RevocationListeners
  readonly #staleness: ListStaleness | undefined
  #informer: Informer | undefined
  readonly #whenMore: (() => void)[] = []
  #revoked: ReadonlySet<string> = new Set()
  #problems: ReadonlySet<string> = new Set()
  #known = false
  #ended: Promise<unknown> = Promise.resolve()

  constructor(options: RevocationsOptions) {
    this.#options = options
    this.#log = options.log.child({ component: this.name })
    this.#listeners = new RevocationListeners((err) => {
      this.#log.error({ err }, 'cannot close the stream of a revoked credential')
    })
    if (options.staleness !== 'never') this.#staleness = this.#createStaleness(options.staleness)
  }

  /** Resolves once the list has been read. */
  async start(): Promise<void> {
    const { view, clock } = this.#options
    const { signal } = this.#stop
    const { namespace, name } = revocationListKey
    const query = { namespace, fieldSelector: `metadata.name=${name}` }
    const kind = wellKnownKinds.configMap
    const informer = createInformer({ view, kind, query, log: this.#log, clock, signal })
    informer.onChange(({ after }) => this.#read(after))
    this.#ended = informer.ended
    this.#informer = informer
    await informer.synced
    this.#staleness?.confirmed(informer.confirmedAt)
    this.#known = true
    this.#ended = Promise.all([informer.ended, this.#staleness?.keep(signal)])
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#stop.abort()
    await Promise.race([this.#ended, aborted(deadline)])
  }

  /** Throws 401 when the user or the credential is revoked, 503 when that cannot be known. */
  check(authentication: Authentication): void {
    if (this.isRevoked(authentication)) throw unauthorized('the user or the credential is revoked')
  }

  /** True when the user or the credential is revoked; throws 503 when that cannot be known. */
  isRevoked(authentication: Authentication): boolean {
    if (!this.#known || this.#staleness?.isStale) {
      throw new ApiError(
        'ServiceUnavailable',
        'it cannot be known whether the credential is revoked, try again later',
        { detail: 'the list of revoked credentials is stale' },
      )
    }
    return keysOf(authentication).some((key) => this.#revoked.has(key))
  }

  /**
   * Calls `listener` once when the user or the credential is revoked, or when the list is stale: streams must be
   * closed then. Returns how to stop listening.
   */
  onRevoked(authentication: Authentication, listener: () => void): () => void {
    const keys = keysOf(authentication)
    const remove = this.#listeners.add(keys, listener)
    const isStale = this.#staleness?.isStale ?? false
    this.#listeners.call(keys.filter((key) => isStale || this.#revoked.has(key)))
    return remove
  }

  /** Calls `listener` whenever something more is revoked, or the list becomes stale; until `stop`. */
  onMoreRevoked(listener: () => void): void {
    this.#whenMore.push(listener)
  }

  #callAll(keys?: Iterable<string>): void {
    if (keys) this.#listeners.call(keys)
    else this.#listeners.callAll()
    for (const listener of this.#whenMore) listener()
  }

  #createStaleness(options: StalenessOptions): ListStaleness {
    return new ListStaleness(options, this.#options.clock, {
      confirm: async (signal) => {
        const isConfirmed = await this.#informer?.confirm(0, signal)
        if (isConfirmed !== true) throw new Error('revocation list could not be confirmed')
      },
      stale: (err) => {
        const { maxAgeMs } = options
        this.#log.error({ err, maxAgeMs }, 'revocation list is stale, rejecting all requests')
        this.#callAll()
      },
      fresh: () => {
        this.#log.info({}, 'revocation list is up to date again')
      },
    })
  }

  #read(list: KubeObject | undefined): void {
    const { revocations, problems } = parseRevocations(list)
    this.#warn(problems)
    const revoked = new Set(revocations.map(keyOf))
    const isNews = [...revoked].some((key) => !this.#revoked.has(key))
    if (!isNews && revoked.size === this.#revoked.size) return
    this.#revoked = revoked
    this.#log.info({ entries: revoked.size }, 'revocation list read')
    if (isNews) this.#callAll(revoked)
  }

  #warn(problems: readonly string[]): void {
    const news = problems.filter((problem) => !this.#problems.has(problem))
    this.#problems = new Set(problems)
    for (const problem of news.slice(0, maxLoggedProblems)) {
      this.#log.warn({ problem }, 'revocation list has a bad entry')
    }
  }
}

const keyOf = ({ type, value }: Revocation): string => `${type}:${value}`

const knownKeys = new WeakMap<Authentication, readonly string[]>()

/** Authenticators return the same object for the same credential. */
function keysOf(authentication: Authentication): readonly string[] {
  const known = knownKeys.get(authentication)
  if (known) return known
  const keys = revocationKeys(authentication)
  knownKeys.set(authentication, keys)
  return keys
}

function revocationKeys({ user, impersonator, credential }: Authentication): readonly string[] {
  const keys = [keyOf({ type: 'user', value: user.username })]
  if (impersonator) keys.push(keyOf({ type: 'user', value: impersonator.username }))
  if (credential?.type === 'token') keys.push(keyOf({ type: 'token', value: credential.id }))
  if (credential?.type === 'certificate') {
    const serial = normalSerial(credential.serial) ?? credential.serial
    keys.push(keyOf({ type: 'certificate', value: serial }))
  }
  return keys
}
