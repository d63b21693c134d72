export type {
  ApiParts,
  ApiSubresource,
  ExtraResource,
  ExtraSubresource,
  ReviewKindEntry,
} from './api-model.ts'
export type { ServerFacts } from './documents.ts'
export { ApiDocuments, type DocumentAnswer, type DocumentRequest } from './documents.ts'
export type { DescribedPath } from './openapi-types.ts'
