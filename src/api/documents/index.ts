export { ApiDocuments, type DocumentAnswer, type DocumentRequest } from './api-documents.ts'
export type {
  ApiParts,
  ApiSubresource,
  ExtraResource,
  ExtraSubresource,
  ReviewKindEntry,
} from './api-model.ts'
export type { ServerFacts } from './document-set.ts'
export type { DescribedPath } from './openapi-plain-path.ts'
