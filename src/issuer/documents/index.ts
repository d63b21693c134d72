export {
  discoveryPath,
  type IssuerDocuments,
  jwksPath,
  renderIssuerDocuments,
} from './issuer-documents.ts'
