export {
  type CredentialCache,
  type CredentialCacheOptions,
  openCredentialCache,
} from './credential-cache.ts'
export { ExecInfoInvalid } from './exec-info-invalid.ts'
export {
  type ExecInfo,
  type ExecInfoCluster,
  readExecInfo,
  requireCluster,
} from './read-exec-info.ts'
export { type PluginCredential, renderCredential, writeCredential } from './render-credential.ts'
