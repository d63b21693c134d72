export {
  type CredentialCache,
  type CredentialCacheOptions,
  openCredentialCache,
} from './credential-cache.ts'
export {
  type ExecInfo,
  type ExecInfoCluster,
  ExecInfoInvalid,
  readExecInfo,
  requireCluster,
} from './request.ts'
export { type PluginCredential, renderCredential, writeCredential } from './response.ts'
