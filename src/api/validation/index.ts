export * from './field-problem.ts'
export { validateMetadata, validateMetadataUpdate } from './metadata.ts'
export { validateCreate, validateUpdate } from './validate-object.ts'
