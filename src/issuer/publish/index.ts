export { DocumentServer } from './document-server.ts'
export type { PublicDocuments, PublishOptions } from './public-documents.ts'
export {
  documentsOfIssuer,
  documentsOfServer,
  followDocuments,
  type ReadDocuments,
} from './public-documents.ts'
export { writeDocuments } from './write-documents.ts'
