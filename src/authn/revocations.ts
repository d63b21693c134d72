import { follow } from '../client/index.ts'
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
  unauthorized,
  wellKnownKinds,
} from '../core/index.ts'
import { ListSight, type SightOptions } from './revocation-freshness.ts'
import {
  normalSerial,
  parseRevocations,
  type Revocation,
  revocationListKey,
} from './revocation-list.ts'

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
  /** `always` for a view within this process, which cannot be lost. */
  readonly sight: 'always' | SightOptions
}

/** A list of which nothing can be read must not fill the log. */
const maxToldProblems = 10

/** Knows who is revoked, from `start` to `stop`, and refuses everybody while it cannot know. */
export class Revocations implements Component {
  readonly name = 'revocations'
  readonly failed = neverFails()
  readonly #options: RevocationsOptions
  readonly #log: Logger
  readonly #stop = new AbortController()
  readonly #listeners: RevocationListeners
  readonly #sight: ListSight | undefined
  #revoked: ReadonlySet<string> = new Set()
  #problems: ReadonlySet<string> = new Set()
  #changes = 0
  #known = false
  #ended: Promise<unknown> = Promise.resolve()

  constructor(options: RevocationsOptions) {
    this.#options = options
    this.#log = options.log.child({ component: this.name })
    this.#listeners = new RevocationListeners((err) => {
      this.#log.error({ err }, 'cannot cut the stream of a revoked credential')
    })
    if (options.sight !== 'always') this.#sight = this.#createSight(options.sight)
  }

  /** Resolves once the list has been read. */
  async start(): Promise<void> {
    const { view } = this.#options
    const { namespace, name } = revocationListKey
    const query = { namespace, fieldSelector: `metadata.name=${name}` }
    const following = follow(
      { view, kind: wellKnownKinds.configMap, query, log: this.#log },
      { put: (list) => this.#take(list), remove: () => this.#take(undefined) },
      this.#stop.signal,
    )
    this.#ended = following.ended
    await following.synced
    this.#known = true
    this.#sight?.seen()
    this.#ended = Promise.all([following.ended, this.#sight?.keep(this.#stop.signal)])
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
    if (!this.#known || this.#sight?.isLost()) {
      throw new ApiError(
        'ServiceUnavailable',
        'it cannot be known whether the credential is revoked, try again later',
        { detail: 'the list of revoked credentials is out of sight' },
      )
    }
    return keysOf(authentication).some((key) => this.#revoked.has(key))
  }

  /**
   * Calls `listener` once when the user or the credential gets revoked, or when the list is lost
   * from sight: whoever holds a stream open must end it then. Returns how to stop listening.
   */
  onRevoked(authentication: Authentication, listener: () => void): () => void {
    const keys = keysOf(authentication)
    const remove = this.#listeners.add(keys, listener)
    const isLost = this.#sight?.isLost() ?? false
    this.#listeners.call(keys.filter((key) => isLost || this.#revoked.has(key)))
    return remove
  }

  #createSight(sight: SightOptions): ListSight {
    const { view, clock } = this.#options
    return new ListSight(sight, clock, {
      look: async (signal) => {
        const before = this.#changes
        const list = await view.get(wellKnownKinds.configMap, revocationListKey, signal)
        // A watch event that came meanwhile is newer than this answer may be.
        if (before === this.#changes && !signal.aborted) this.#take(list)
      },
      lost: (err) => {
        this.#log.error({ err }, 'revocation list lost from sight, refusing everybody')
        this.#listeners.callAll()
      },
      found: () => {
        this.#log.info({}, 'revocation list in sight again')
      },
    })
  }

  #take(list: KubeObject | undefined): void {
    this.#changes += 1
    const { revocations, problems } = parseRevocations(list)
    this.#warn(problems)
    const revoked = new Set(revocations.map(keyOf))
    const isNews = [...revoked].some((key) => !this.#revoked.has(key))
    if (!isNews && revoked.size === this.#revoked.size) return
    this.#revoked = revoked
    this.#log.info({ entries: revoked.size }, 'revocation list read')
    if (isNews) this.#listeners.call(revoked)
  }

  #warn(problems: readonly string[]): void {
    const news = problems.filter((problem) => !this.#problems.has(problem))
    this.#problems = new Set(problems)
    for (const problem of news.slice(0, maxToldProblems)) {
      this.#log.warn({ problem }, 'revocation list has a bad entry')
    }
  }
}

const keyOf = ({ type, value }: Revocation): string => `${type}:${value}`

function keysOf({ user, impersonator, credential }: Authentication): string[] {
  const keys = [keyOf({ type: 'user', value: user.username })]
  if (impersonator) keys.push(keyOf({ type: 'user', value: impersonator.username }))
  if (credential?.type === 'token') keys.push(keyOf({ type: 'token', value: credential.id }))
  if (credential?.type === 'certificate') {
    const serial = normalSerial(credential.serial) ?? credential.serial
    keys.push(keyOf({ type: 'certificate', value: serial }))
  }
  return keys
}
