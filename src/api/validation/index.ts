export * from './field-problem.ts'
export {
  validateCreate,
  validateMetadata,
  validateMetadataUpdate,
  validateUpdate,
} from './metadata.ts'
