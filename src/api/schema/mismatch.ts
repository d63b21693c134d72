import { ApiError } from '../../core/index.ts'
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
