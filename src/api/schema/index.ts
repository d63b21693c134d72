export { checkStructure, StructureMismatch } from './check-structure.ts'
export { schemaOf } from './schema-of.ts'
export type {
  FieldSchema,
  FieldType,
  GroupVersionKind,
  StructSchema,
} from './schema-types.ts'
export { strictScan } from './strict-scan.ts'
