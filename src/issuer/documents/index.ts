export {
  discoveryPath,
  type IssuerDocuments,
  jwksPath,
  renderIssuerDocuments,
} from './documents.ts'
