export { type Diagnosis, diagnoseIssuer } from './diagnose.ts'
export { inspectIssuer, readUnverifiedClaims } from './inspect.ts'
export { relyingPartyNames } from './relying-parties.ts'
