import {
  type Clock,
  isRecord,
  type Kind,
  type KubeObject,
  type UserInfo,
} from '../../core/index.ts'
import type { FieldProblem } from '../validation/field-problem.ts'
import { nameIsDnsSubdomain } from '../validation/names.ts'
import { carryOver } from './fields.ts'

const second = 1000
const minute = 60 * second
const hour = 60 * minute

const pair = (large: number, unit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${large}${unit}` : `${large}${unit}${small}${smallUnit}`

/** A duration with two or three significant figures, as `kubectl get` shows ages. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / second)
  // A clock that is a second behind is no reason to worry anybody.
  if (seconds < 0) return seconds < -1 ? '<invalid>' : '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(ms / minute)
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  return hoursAndMore(Math.floor(ms / hour), minutes)
}

function hoursAndMore(hours: number, minutes: number): string {
  const days = Math.floor(hours / 24)
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  if (days < 8) return pair(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(days / 365)
  return years < 8 ? pair(years, 'y', days % 365, 'd') : `${years}y`
}

/** One column of `kubectl get`. Priority 0 is always shown, higher ones with `-o wide`. */
export interface Column {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly format?: string
  readonly priority?: number
  readonly description: string
  /** The cell; `now` (epoch milliseconds) is for ages. */
  readonly cell: (object: KubeObject, now: number) => string | number | boolean | null
}

/** A remark on a row of a Table. */
export interface RowCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

/** What a write knows besides its object. */
export interface WriteContext {
  readonly user: UserInfo
  readonly clock: Clock
}

/** What our own controllers may write and nobody else. */
export interface Allowances {
  /** Endpoints on this very machine, which would let a stranger reach what listens on loopback. */
  readonly loopbackEndpoints?: boolean
}

/** A part of an object with a URL of its own, such as `status`. */
export interface Subresource {
  readonly name: string
  readonly verbs: readonly string[]
  /**
   * Builds the object to store from what was sent and what is stored: takes only the part that this
   * subresource owns.
   */
  readonly merge: (sent: KubeObject, stored: KubeObject, context: WriteContext) => KubeObject
  readonly validate?: (draft: KubeObject, stored: KubeObject) => FieldProblem[]
}

/** Everything that is particular to one kind; the registry does the rest the same way for all. */
export interface KindDefinition {
  readonly kind: Kind
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  /** What may be done with the kind itself; every verb unless given. */
  readonly verbs?: readonly string[]
  readonly subresources: readonly Subresource[]
  /** Problems of `metadata.name`, without their field path. `prefix` is true for a generateName. */
  readonly nameProblems: (name: string, prefix: boolean) => string[]
  /** Fields besides metadata.name and metadata.namespace that a field selector may use. */
  readonly selectableFields: Readonly<Record<string, (object: KubeObject) => string>>
  /** Fills in Kubernetes' default values, in place. Runs after decoding, on create and update. */
  readonly applyDefaults: (draft: KubeObject) => void
  /** Drops what a creator may not set (such as status) and sets what the server decides, in place. */
  readonly prepareCreate: (draft: KubeObject, context: WriteContext) => void
  /** Carries over what an update of the main resource may not touch (such as status), in place. */
  readonly prepareUpdate: (draft: KubeObject, stored: KubeObject, context: WriteContext) => void
  /** Every problem of the object but those of its metadata. */
  readonly validate: (draft: KubeObject, allowances?: Allowances) => FieldProblem[]
  /** Every problem of the change (immutable fields), beyond `validate`. */
  readonly validateUpdate: (draft: KubeObject, stored: KubeObject) => FieldProblem[]
  /** True when the object has a `metadata.generation`. */
  readonly hasGeneration: boolean
  /** True when a change begins a new generation; when not given, every change of `spec` does. */
  readonly isNewGeneration?: (draft: KubeObject, stored: KubeObject) => boolean
  /** True when a PUT to a name that does not exist creates the object. */
  readonly createOnUpdate?: boolean
  /** True when a PUT without resourceVersion is refused instead of overwriting. */
  readonly conditionalUpdateOnly?: boolean
  /** True when a deletion is answered with the last state of the object instead of a Status. */
  readonly returnsDeleted?: boolean
  /** True when the object is marked as deleted even if nothing holds it. */
  readonly marksDeleted?: boolean
  /** Said to everybody who uses the kind at all. */
  readonly deprecation?: string
  /** Said to whoever writes the object; it is stored all the same. */
  readonly warnings?: (draft: KubeObject) => readonly string[]
  readonly columns: readonly Column[]
  /** Conditions of the object's row in a Table, such as `Completed`. */
  readonly rowConditions?: (object: KubeObject) => readonly RowCondition[]
}

/** How long ago `time` was, for people; `<unknown>` when it is not known. */
export function timeSince(time: unknown, now: number): string {
  if (typeof time !== 'string') return '<unknown>'
  const then = Date.parse(time)
  return Number.isNaN(then) ? '<unknown>' : humanDuration(now - then)
}

/** A column of text. */
export const column = (
  name: string,
  description: string,
  cell: (object: KubeObject, now: number) => string | number,
): Column => ({ name, type: 'string', description, cell })

/** A column of text that only `-o wide` shows. */
export const wideColumn = (
  name: string,
  description: string,
  cell: (object: KubeObject, now: number) => string | number,
): Column => ({ ...column(name, description, cell), priority: 1 })

/** The column with the object's name. */
export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name of the object, unique among its kind in its namespace.',
  cell: (object) => object.metadata.name,
}

/** The column with the time since the object was created. */
export const ageColumn = column('Age', 'Time since the object was created.', (object, now) =>
  timeSince(object.metadata.creationTimestamp, now),
)

/** The column with the moment the object was created. */
export const createdAtColumn: Column = {
  name: 'Created At',
  type: 'date',
  description: 'When the object was created.',
  cell: (object) => object.metadata.creationTimestamp ?? null,
}

/** What a kind must say about itself; the rest has defaults. */
export type KindParticulars = Partial<KindDefinition> & { readonly kind: Kind }

/** Completes a kind: no status, no rules of its own, DNS subdomain names, columns Name and Age. */
export const defineKind = (particulars: KindParticulars): KindDefinition => ({
  singular: particulars.kind.kind.toLowerCase(),
  shortNames: [],
  categories: [],
  subresources: [],
  nameProblems: nameIsDnsSubdomain,
  selectableFields: {},
  applyDefaults: () => {},
  prepareCreate: () => {},
  prepareUpdate: () => {},
  validate: () => [],
  validateUpdate: () => [],
  hasGeneration: false,
  columns: [nameColumn, ageColumn],
  ...particulars,
})

/** Takes `metadata` and the named parts from what was sent, everything else from what is stored. */
export function mergeParts(
  sent: KubeObject,
  stored: KubeObject,
  parts: readonly string[],
): KubeObject {
  const merged: KubeObject = { ...stored, metadata: sent.metadata }
  for (const part of parts) carryOver(merged, sent, part)
  return merged
}

/** The `status` of a kind, with a URL of its own. */
export const statusSubresource = (particulars: Partial<Subresource> = {}): Subresource => ({
  name: 'status',
  verbs: ['get', 'patch', 'update'],
  merge: (sent, stored) => mergeParts(sent, stored, ['status']),
  ...particulars,
})

/** How many items of a list are shown in a column. */
export const shownItems = 3

/** The first items, and how many more there are. */
export function withMore(items: readonly string[], count: number = items.length): string {
  const text = items.slice(0, shownItems).join(',')
  return count > shownItems ? `${text} + ${count - shownItems} more...` : text
}

/** Absent, null, empty text, empty list and empty object all say nothing. */
function isNothing(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  if (Array.isArray(value)) return value.length === 0
  return isRecord(value) && Object.values(value).every(isNothing)
}

/** True when two JSON values say the same, whether or not they leave out what is empty. */
export function sameMeaning(a: unknown, b: unknown): boolean {
  if (isNothing(a) || isNothing(b)) return isNothing(a) && isNothing(b)
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => sameMeaning(item, b[index]))
  }
  if (isRecord(a) && isRecord(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)])
    return [...keys].every((key) => sameMeaning(a[key], b[key]))
  }
  return a === b
}
