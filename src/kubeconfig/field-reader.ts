import { isRecord, Secret } from '../core/index.ts'

/** Reads the fields of one map out of untrusted data, and notes every problem with its path. */
export class FieldReader {
  readonly path: string
  readonly problems: string[]
  readonly #fields: Record<string, unknown>
  readonly #known = new Set<string>()

  constructor(value: unknown, path: string, problems: string[]) {
    this.path = path
    this.problems = problems
    this.#fields = isRecord(value) ? value : {}
    if (!isRecord(value) && value != null) this.#note('', `must be a map, not ${kindOf(value)}`)
  }

  string(name: string): string | undefined {
    return this.#read(name, 'a string', (value) => (typeof value === 'string' ? value : undefined))
  }

  /** A string that is not there when it is empty, as kubectl sees it. */
  filled(name: string): string | undefined {
    return this.string(name) || undefined
  }

  secret(name: string): Secret | undefined {
    const value = this.filled(name)
    return value === undefined ? undefined : new Secret(value)
  }

  boolean(name: string): boolean | undefined {
    return this.#read(name, 'true or false', (value) =>
      typeof value === 'boolean' ? value : undefined,
    )
  }

  strings(name: string): readonly string[] | undefined {
    return this.#read(name, 'a list of strings', (value) =>
      Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined,
    )
  }

  /** Text that stands there as base64; line breaks in it do not matter. */
  base64Text(name: string): string | undefined {
    const value = this.filled(name)?.replaceAll(/[\r\n]/g, '')
    if (value === undefined) return undefined
    if (value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value)) {
      return Buffer.from(value, 'base64').toString('utf8')
    }
    this.#note(name, 'is not valid base64')
    return undefined
  }

  /** The reader of a nested map, or `undefined` if there is none. */
  map(name: string): FieldReader | undefined {
    this.#known.add(name)
    const value = this.#fields[name]
    return value == null ? undefined : this.#child(name, value)
  }

  /** Readers of the entries of a list of maps. */
  list(name: string): FieldReader[] {
    const items = this.#read(name, 'a list', (value) => (Array.isArray(value) ? value : undefined))
    return (items ?? []).map((item: unknown, index) => this.#child(`${name}[${index}]`, item))
  }

  /** The names of all fields. */
  names(): string[] {
    return Object.keys(this.#fields)
  }

  /** A field as it is. */
  raw(name: string): unknown {
    this.#known.add(name)
    return this.#fields[name]
  }

  /** Says that something about a field is wrong. */
  note(name: string, problem: string): void {
    this.#note(name, problem)
  }

  /** What nobody has asked for. */
  rest(): { unknown?: Record<string, unknown> } {
    const entries = Object.entries(this.#fields).filter(([name]) => !this.#known.has(name))
    return entries.length > 0 ? { unknown: Object.fromEntries(entries) } : {}
  }

  #read<T>(name: string, wanted: string, accept: (value: unknown) => T | undefined): T | undefined {
    this.#known.add(name)
    const value = Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined
    if (value == null) return undefined
    const accepted = accept(value)
    if (accepted === undefined) this.#note(name, `must be ${wanted}, not ${kindOf(value)}`)
    return accepted
  }

  #child(name: string, value: unknown): FieldReader {
    return new FieldReader(value, this.#pathOf(name), this.problems)
  }

  #pathOf(name: string): string {
    return this.path && name ? `${this.path}.${name}` : this.path || name
  }

  #note(name: string, problem: string): void {
    const path = this.#pathOf(name)
    this.problems.push(path ? `${path} ${problem}` : problem)
  }
}

// Never the value itself: it may be a credential in the wrong place.
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (isRecord(value)) return 'a map'
  return typeof value === 'object' ? 'null' : `a ${typeof value}`
}

/** Drops absent values, since an optional field may be missing but never undefined. */
export function present<T extends object>(
  fields: T,
): {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K]
} & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> } {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(kept) as ReturnType<typeof present<T>>
}
