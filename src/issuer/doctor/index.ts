export { type Diagnosis, diagnoseIssuer } from './diagnose.ts'
export { inspectIssuer, peekAtToken } from './inspect.ts'
export { relyingPartyNames } from './relying-parties.ts'
