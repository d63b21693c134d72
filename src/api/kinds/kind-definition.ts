import type { Clock, Kind, KubeObject, UserInfo } from '../../core/index.ts'
import type { FieldProblem } from '../validation/field-problem.ts'

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
