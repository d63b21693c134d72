import { SallyportError } from './errors.ts'

/** How much work one input may cause. Counted, so that the same input is always accepted or always refused. */
export interface WorkLimits {
  /** Syntactic elements: values of a JSON text, fields of a protobuf message. */
  readonly tokens: number
  /** Lexemes of a YAML text: far more expensive than tokens of JSON. */
  readonly yamlTokens: number
  readonly yamlBytes: number
  /** Parts of the object that the input becomes: structs by their number of fields, entries, items. */
  readonly nodes: number
  /** Steps of a patch: values compared, copied and merged, path elements, list items moved. */
  readonly operations: number
}

/** The kinds of work that are counted. */
export type WorkKind = keyof WorkLimits

const words: Readonly<Record<WorkKind, string>> = {
  tokens: 'values',
  yamlTokens: 'YAML tokens',
  yamlBytes: 'bytes of YAML',
  nodes: 'fields, entries and items',
  operations: 'operations',
}

/** An input causes more work than its limits allow. */
export class WorkExceeded extends SallyportError {
  readonly code = 'WORK_EXCEEDED'
  readonly kind: WorkKind
  readonly limit: number

  constructor(kind: WorkKind, limit: number) {
    super(`more than ${limit} ${words[kind]}`)
    this.kind = kind
    this.limit = limit
  }
}

/** Counts the work that one input causes, before it is done, and stops at the limits. */
export class Work {
  tokens = 0
  yamlTokens = 0
  yamlBytes = 0
  nodes = 0
  operations = 0
  readonly #limits: WorkLimits

  constructor(limits: WorkLimits) {
    this.#limits = limits
  }

  /** @throws WorkExceeded */
  spend(kind: WorkKind, amount: number): void {
    const next = this[kind] + amount
    if (next > this.#limits[kind]) throw new WorkExceeded(kind, this.#limits[kind])
    this[kind] = next
  }

  /** What may still be spent. */
  left(kind: WorkKind): number {
    return this.#limits[kind] - this[kind]
  }
}
