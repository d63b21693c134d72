import {
  ApiError,
  forbidden,
  isRecord,
  type Kind,
  type Logger,
  type UserInfo,
  wellKnown,
} from '../../core/index.ts'
import { type Store, type StoredRecord, type StoreEvent } from '../../storage/index.ts'
import { namespace as namespaceDefinition } from '../kinds/namespace.ts'
import {
  derivedObjectsRatio,
  fewRequests,
  maxRequestsPerUser,
  storeReserve,
  warningRatio,
} from './limits.ts'
import { storePrefix } from './object-bytes.ts'
import { quotaAnnotations as annotations, parseLimit } from './quota-admission.ts'
import {
  isDerivedPool,
  isRequesterPool,
  namespaceOfPool,
  placeOf,
  poolOf,
  requesterPool,
  requestPool,
  requestPrefix,
  revocationsKey,
} from './quota-pools.ts'

/** How much may be stored; 0 is no limit. */
export interface QuotaLimits {
  readonly maxNamespaceObjects: number
  readonly maxNamespaceBytes: number
  readonly maxStoreObjects: number
  readonly maxStoreBytes: number
}

/** Everything may be stored. */
export const noLimits: QuotaLimits = {
  maxNamespaceObjects: 0,
  maxNamespaceBytes: 0,
  maxStoreObjects: 0,
  maxStoreBytes: 0,
}

/** Objects and bytes: stored, requested or permitted. */
interface Amount {
  objects: number
  bytes: number
}

/** A write: its user, and the object for messages. */
export interface Writer {
  readonly user: UserInfo
  readonly kind: Kind
  readonly name: string
}

/** What is used and permitted, for metrics and warnings. */
export interface Usage {
  readonly used: Readonly<Amount>
  readonly max: Readonly<Amount>
}

const amounts = ['objects', 'bytes'] as const
const namespacePrefix = storePrefix(namespaceDefinition.kind, {})

/**
 * The only way to write objects: it knows how much is stored, in all and per namespace, and refuses
 * what exceeds a limit. Counts follow the commits of the store, so that writes of replicas count too.
 * A write is reserved before it is made: writes at the same time cannot exceed a limit together.
 */
export class QuotaStore {
  readonly #store: Store
  readonly #log: Logger
  readonly #namespaceLimits: Readonly<Amount>
  readonly #storeLimits: Readonly<Amount>
  readonly #total = nothing()
  readonly #pending = nothing()
  readonly #byPool = new Map<string, Amount>()
  readonly #pendingByPool = new Map<string, Amount>()
  /** Limits that annotations set. */
  readonly #ownLimits = new Map<string, Readonly<Amount>>()
  readonly #creating = new Set<string>()
  readonly #warned = new Set<string>()
  readonly #refusals = { namespace: 0, store: 0, user: 0 }

  /** Reads all that is stored, and follows it from then on until the store is closed. */
  constructor(store: Store, limits: QuotaLimits, log: Logger) {
    this.#store = store
    this.#log = log
    this.#namespaceLimits = limitsOf(limits.maxNamespaceObjects, limits.maxNamespaceBytes)
    this.#storeLimits = limitsOf(limits.maxStoreObjects, limits.maxStoreBytes)
    for (const run of store.range('').runs)
      for (const record of run) this.#count({ type: 'put', record })
    store.watch('', store.revision, (events) => {
      for (const event of events) this.#count(event)
      for (const event of events) this.#warn(poolOf(event.record.key))
    })
  }

  /** Refusals since the start, by the limit that was exceeded. */
  get refusals(): Readonly<Record<'namespace' | 'store' | 'user', number>> {
    return this.#refusals
  }

  async create(key: string, value: Buffer, writer: Writer): Promise<StoredRecord> {
    // Of many creations of one key one succeeds: the others need no room, and get 409 and not 403.
    if (this.#creating.has(key) || this.#store.get(key)) return this.#store.create(key, value)
    const release = this.#reserve(key, { objects: 1, bytes: key.length + value.length }, writer)
    this.#creating.add(key)
    try {
      return await this.#store.create(key, value)
    } finally {
      this.#creating.delete(key)
      release()
    }
  }

  async update(before: StoredRecord, value: Buffer, writer: Writer): Promise<StoredRecord> {
    const { key, revision } = before
    const growth = { objects: 0, bytes: value.length - before.value.length }
    const release = growth.bytes > 0 ? this.#reserve(key, growth, writer) : undefined
    try {
      return await this.#store.update(key, value, revision)
    } finally {
      release?.()
    }
  }

  /** Marks an object whose deletion has to wait. It grows by the mark, but what is deleted frees more. */
  markDeleted(before: StoredRecord, value: Buffer): Promise<StoredRecord> {
    return this.#store.update(before.key, value, before.revision)
  }

  delete(key: string, revision: number): Promise<number> {
    return this.#store.delete(key, revision)
  }

  /** What is stored in all, or in one pool: a namespace, its events, or the cluster's own objects (empty). */
  usage(pool?: string): Usage {
    if (pool === undefined) return { used: this.#total, max: this.#storeLimits }
    return { used: this.#byPool.get(pool) ?? none, max: this.#limitsOf(pool) }
  }

  /** What users who have just written here should know: a limit is near. */
  warnings(namespace: string): readonly string[] {
    const own = this.#nearLimit(namespace)
    const all = this.#nearLimit(undefined)
    if (own === undefined && all === undefined) return noWarnings
    return [
      ...(own ? [`${placeOf(namespace)} ${own}: new objects are refused at the limit`] : []),
      ...(all ? [`the store ${all}: at the limit only administrators can add to it`] : []),
    ]
  }

  #limitsOf(pool: string): Readonly<Amount> {
    if (isRequesterPool(pool)) return maxRequestsPerUser
    const max = this.#ownLimits.get(namespaceOfPool(pool)) ?? this.#namespaceLimits
    return isDerivedPool(pool) ? { ...max, objects: max.objects * derivedObjectsRatio } : max
  }

  #reserve(key: string, amount: Readonly<Amount>, writer: Writer): () => void {
    if (key === revocationsKey && isAdministrator(writer.user)) return () => {}
    const pool = poolOf(key)
    const isNewRequest = pool === requestPool && amount.objects > 0
    const pools = isNewRequest ? [requesterPool(writer.user.username), pool] : [pool]
    for (const each of pools) this.#requirePool(each, amount, writer)
    this.#requireStore(amount, writer)
    for (const each of pools) add(amountOf(this.#pendingByPool, each), amount)
    add(this.#pending, amount)
    return () => {
      for (const each of pools) addOrDelete(this.#pendingByPool, each, amount, -1)
      add(this.#pending, amount, -1)
    }
  }

  #requirePool(pool: string, amount: Readonly<Amount>, { user, kind, name }: Writer): void {
    if (isExempt(user, pool)) return
    const { used, max } = this.usage(pool)
    const permitted = this.#hasFewRequests(pool, amount, user) ? times(max, 2) : max
    const exceeded = exceededBy(amount, used, this.#pendingByPool.get(pool), permitted)
    if (!exceeded) return
    this.#refusals[isRequesterPool(pool) ? 'user' : 'namespace']++
    const why = `exceeded quota: ${placeOf(pool)}, ${figures(exceeded, amount, used, max)}`
    throw forbidden(kind, name, `${why}; ${remedyFor(pool, exceeded)}`)
  }

  /** Users with many certificate signing requests, whoever they are, do not keep out a node that joins or renews. */
  #hasFewRequests(pool: string, amount: Readonly<Amount>, { username }: UserInfo): boolean {
    if (pool !== requestPool) return false
    const own = requesterPool(username)
    const used = this.#byPool.get(own) ?? none
    return !exceededBy(amount, used, this.#pendingByPool.get(own), fewRequests)
  }

  #requireStore(amount: Readonly<Amount>, { user }: Writer): void {
    const max = times(this.#storeLimits, reserveOf(user))
    const exceeded = exceededBy(amount, this.#total, this.#pending, max)
    if (!exceeded) return
    this.#refusals.store++
    throw new ApiError(
      'InsufficientStorage',
      `the store is full: ${figures(exceeded, amount, this.#total, max)}; delete objects, or restart the server with a larger --max-store-${exceeded}`,
    )
  }

  #count({ type, record, previous }: StoreEvent): void {
    const { key, value } = record
    const change = nothing()
    if (type === 'put') add(change, { objects: 1, bytes: key.length + value.length })
    if (previous) add(change, { objects: 1, bytes: key.length + previous.value.length }, -1)
    addOrDelete(this.#byPool, poolOf(key), change)
    add(this.#total, change)
    if (key.startsWith(namespacePrefix)) this.#readLimits(key, type === 'put' ? value : undefined)
    else if (key.startsWith(requestPrefix)) {
      const { spec } = storedFields(type === 'put' ? value : (previous?.value ?? value))
      const username = isRecord(spec) ? String(spec['username']) : ''
      addOrDelete(this.#byPool, requesterPool(username), change)
    }
  }

  #readLimits(key: string, value: Buffer | undefined): void {
    const name = key.slice(namespacePrefix.length)
    if (!value?.includes('"sallyport.dev/max-')) {
      this.#ownLimits.delete(name)
      return
    }
    const { metadata } = storedFields(value)
    const given =
      isRecord(metadata) && isRecord(metadata['annotations']) ? metadata['annotations'] : {}
    const own = { ...this.#namespaceLimits }
    for (const amount of amounts) {
      const limit = parseLimit(given[annotations[amount]])
      if (limit !== undefined) own[amount] = limit
    }
    this.#ownLimits.set(name, own)
  }

  #nearLimit(pool: string | undefined): string | undefined {
    const { used, max } = this.usage(pool)
    const near = amounts.find((each) => used[each] >= max[each] * warningRatio)
    return near && `has ${used[near]} of ${max[near]} ${near}`
  }

  /** Logs once that a limit is near, and again only after there was room. */
  #warn(pool: string): void {
    for (const place of [pool, undefined]) {
      const near = this.#nearLimit(place)
      const name = place === undefined ? 'the store' : placeOf(place)
      if (near === undefined) this.#warned.delete(name)
      else if (!this.#warned.has(name)) {
        this.#warned.add(name)
        this.#log.warn({ place: name, usage: near }, 'a storage limit is near')
      }
    }
  }
}

const nothing = (): Amount => ({ objects: 0, bytes: 0 })
const none: Readonly<Amount> = nothing()
const noWarnings: readonly string[] = []

const limitsOf = (objects: number, bytes: number): Readonly<Amount> => ({
  objects: objects || Number.POSITIVE_INFINITY,
  bytes: bytes || Number.POSITIVE_INFINITY,
})

function add(to: Amount, amount: Readonly<Amount>, factor = 1): void {
  to.objects += factor * amount.objects
  to.bytes += factor * amount.bytes
}

const times = ({ objects, bytes }: Readonly<Amount>, factor: number): Readonly<Amount> => ({
  objects: Math.floor(objects * factor),
  bytes: Math.floor(bytes * factor),
})

function amountOf(map: Map<string, Amount>, pool: string): Amount {
  const known = map.get(pool)
  if (known) return known
  const fresh = nothing()
  map.set(pool, fresh)
  return fresh
}

function addOrDelete(
  map: Map<string, Amount>,
  pool: string,
  amount: Readonly<Amount>,
  factor = 1,
): void {
  const sum = amountOf(map, pool)
  add(sum, amount, factor)
  if (sum.objects === 0 && sum.bytes === 0) map.delete(pool)
}

/** The amount that would exceed its limit. What does not grow is never refused. */
const exceededBy = (
  amount: Readonly<Amount>,
  used: Readonly<Amount>,
  pending: Readonly<Amount> | undefined,
  max: Readonly<Amount>,
): 'objects' | 'bytes' | undefined =>
  amounts.find(
    (each) => amount[each] > 0 && used[each] + (pending?.[each] ?? 0) + amount[each] > max[each],
  )

const figures = (
  each: 'objects' | 'bytes',
  amount: Readonly<Amount>,
  used: Readonly<Amount>,
  max: Readonly<Amount>,
): string =>
  `requested: ${each}=${amount[each]}, used: ${each}=${used[each]}, limited: ${each}=${max[each]}`

function remedyFor(pool: string, exceeded: 'objects' | 'bytes'): string {
  if (isRequesterPool(pool)) return 'requests are removed an hour after they were decided'
  if (namespaceOfPool(pool) === '') return 'delete some'
  return `delete some, or have an administrator raise the annotation ${annotations[exceeded]} of the namespace`
}

const isServer = ({ username, groups }: UserInfo): boolean =>
  username === 'system:apiserver' && groups.includes(wellKnown.masters)
const isAdministrator = ({ groups }: UserInfo): boolean => groups.includes(wellKnown.masters)

/** The server is limited only in what it derives; the cluster's own objects have no annotation to raise their limits by. */
const isExempt = (user: UserInfo, pool: string): boolean =>
  isServer(user) ? !isDerivedPool(pool) : namespaceOfPool(pool) === '' && isAdministrator(user)

function reserveOf(user: UserInfo): number {
  if (isAdministrator(user)) return storeReserve.administrators
  return user.groups.includes(wellKnown.nodes) ? storeReserve.nodes : 1
}

function storedFields(value: Buffer): Record<string, unknown> {
  try {
    const fields: unknown = JSON.parse(`{"metadata":{${value.toString()}`)
    return isRecord(fields) ? fields : {}
  } catch {
    return {}
  }
}
