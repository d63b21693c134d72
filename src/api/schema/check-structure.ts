import { ApiError, isRecord, type Work } from '../../core/index.ts'
import { isOmittable, readScalar, shownType, zeroScalar } from './scalars.ts'
import type { FieldSchema, StructSchema } from './schema-types.ts'

/** A value does not fit its field; the message has the words of Kubernetes' decoder. */
export class StructureMismatch extends ApiError {
  constructor(message: string) {
    super('BadRequest', message)
  }
}

/** Where a value is: the fields from the root down to it, and the struct that has the last one. */
export interface Place {
  readonly owner: StructSchema
  readonly trail: readonly FieldSchema[]
}

/** The error for a value of one type where the field has another, in Go's words. */
export function typeMismatch(shown: string, goType: string, { owner, trail }: Place) {
  const path = trail.flatMap((field) => [...field.embeddedIn, field.jsonName]).join('.')
  const where = path === '' ? 'value' : `struct field ${owner.shortName}.${path}`
  return new StructureMismatch(`json: cannot unmarshal ${shown} into Go ${where} of type ${goType}`)
}

/** The Go type of one element of a list or map of that Go type. */
export function elementType(goType: string): string {
  if (goType.startsWith('[]')) return goType.slice(2)
  if (goType.startsWith('map[')) return goType.slice(goType.indexOf(']') + 1)
  return goType === 'v1.ResourceList' ? 'resource.Quantity' : 'string'
}

/** Assigns so that a key named `__proto__` is a key like any other. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value
  else
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    })
}

/** A value that fits its struct, in the form in which Kubernetes would show it. */
export interface CheckedStructure {
  /** A new object: fields in Kubernetes' order, unknown ones dropped, empty ones as Go leaves them. */
  readonly object: Record<string, unknown>
  /** True when something was dropped because the struct has no such field. */
  readonly hasUnknownFields: boolean
  /** How many keys all objects of the value have together; exact only when no field is unknown. */
  readonly keys: number
}

/**
 * Checks a decoded JSON value against a struct as Kubernetes' decoder does, and brings it into the
 * form that it has after a trip through Kubernetes' storage. The given value is not changed. What it
 * becomes is counted as nodes of `work`: three bytes of a body must not become a struct without end.
 */
export function checkStructure(
  value: unknown,
  schema: StructSchema,
  work?: Work,
): CheckedStructure {
  const pass = new Pass(schema, work)
  const object = pass.readStruct(value, schema)
  return { object, hasUnknownFields: pass.hasUnknownFields, keys: pass.keys }
}

/** So many fields of a struct, absent or not, are as much work as one value. */
const fieldsPerNode = 8
/** Large maps are slow in every step: their keys are unlike. */
const nodesPerEntry = 2

const nothing: Readonly<Record<string, unknown>> = Object.freeze({})

class Pass {
  hasUnknownFields = false
  keys = 0
  readonly #trail: FieldSchema[] = []
  readonly #work: Work | undefined
  #owner: StructSchema

  constructor(root: StructSchema, work: Work | undefined) {
    this.#owner = root
    this.#work = work
  }

  readStruct(sent: unknown, schema: StructSchema): Record<string, unknown> {
    const source = sent === null || sent === undefined ? nothing : sent
    if (!isRecord(source)) return this.#mismatch(source, `v1.${schema.shortName}`)
    this.#work?.spend('nodes', 1 + Math.floor(schema.size / fieldsPerNode))
    const outer = this.#owner
    this.#owner = schema
    const object: Record<string, unknown> = {}
    let known = 0
    for (const field of schema.fields()) {
      const value = source[field.jsonName]
      if (value !== undefined) known++
      if (value === undefined || value === null) this.#writeAbsent(object, field)
      else {
        this.#trail.push(field)
        this.#writePresent(object, field, value)
        this.#trail.pop()
      }
    }
    this.#owner = outer
    this.#count(Object.keys(source).length, known)
    return object
  }

  #count(keys: number, known: number): void {
    this.keys += keys
    if (keys !== known) this.hasUnknownFields = true
  }

  #writeAbsent(object: Record<string, unknown>, field: FieldSchema): void {
    if (field.pointer || field.list || field.map) {
      if (!field.omitEmpty) object[field.jsonName] = null
    } else if (field.struct !== undefined)
      object[field.jsonName] = this.readStruct(undefined, field.struct)
    else {
      const zero = zeroScalar(field)
      if (zero !== undefined) object[field.jsonName] = zero
    }
  }

  #writePresent(object: Record<string, unknown>, field: FieldSchema, sent: unknown): void {
    const value = this.#readField(field, sent)
    if (field.pointer) object[field.jsonName] = value
    // Once stored, an empty list or map is the same as none.
    else if (value === undefined || value === null) this.#writeAbsent(object, field)
    else if (value || !field.omitEmpty || !isOmittable(field.type)) object[field.jsonName] = value
  }

  #readField(field: FieldSchema, sent: unknown): unknown {
    if (field.map) return this.#readMap(field, sent)
    if (field.list) return this.#readList(field, sent, field.goType)
    return this.#readElement(field, sent, field.goType)
  }

  #readMap(field: FieldSchema, sent: unknown): Record<string, unknown> | undefined {
    if (!isRecord(sent)) return this.#mismatch(sent, field.goType)
    const goType = elementType(field.goType)
    const names = Object.keys(sent)
    this.keys += names.length
    this.#work?.spend('nodes', nodesPerEntry * names.length)
    let changed: Record<string, unknown> | undefined
    for (const name of names) {
      const value = sent[name]
      const read = field.list
        ? (this.#readList(field, value, goType) ?? [])
        : this.#readElement(field, value, goType)
      if (read === value) continue
      if (changed === undefined) changed = { ...sent }
      setOwn(changed, name, read)
    }
    return names.length === 0 ? undefined : (changed ?? sent)
  }

  #readList(field: FieldSchema, sent: unknown, goType: string): unknown[] | undefined {
    if (sent === null) return undefined
    if (!Array.isArray(sent)) return this.#mismatch(sent, goType)
    this.#work?.spend('nodes', sent.length)
    const inner = elementType(goType)
    const read = sent.map((value: unknown) => this.#readElement(field, value, inner))
    return read.length === 0 ? undefined : read
  }

  #readElement(field: FieldSchema, sent: unknown, goType: string): unknown {
    if (typeof sent === 'string' && field.type === 'string') return sent
    if (field.struct !== undefined) return this.readStruct(sent, field.struct)
    if (field.type === 'any') {
      const keys = countKeys(sent)
      this.keys += keys
      this.#work?.spend('nodes', keys)
      return sent
    }
    const result = readScalar(field, sent)
    if ('value' in result) return result.value
    if (result.problem === 'content') throw new StructureMismatch(result.shown)
    throw typeMismatch(result.shown, result.goType ?? goType, this.#place)
  }

  get #place() {
    return { owner: this.#owner, trail: this.#trail }
  }

  #mismatch(sent: unknown, goType: string): never {
    throw typeMismatch(shownType(sent), goType, this.#place)
  }
}

/** Keys of all objects inside a value; a loop, because the value may be deep. */
function countKeys(value: unknown): number {
  let keys = 0
  const open: unknown[] = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next !== 'object' || next === null) continue
    const values: unknown[] = Object.values(next)
    if (!Array.isArray(next)) keys += values.length
    for (const inner of values) open.push(inner)
  }
  return keys
}
