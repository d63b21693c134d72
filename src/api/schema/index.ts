export { schemaOf } from './schema-of.ts'
export type {
  FieldSchema,
  FieldType,
  GroupVersionKind,
  PatchStrategy,
  StructSchema,
  Topology,
} from './schema-types.ts'
