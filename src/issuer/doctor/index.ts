export { type Diagnosis, diagnoseIssuer } from './diagnose-issuer.ts'
export { inspectIssuer } from './inspect-issuer.ts'
export { peekAtToken } from './peek-at-token.ts'
export { relyingPartyNames } from './relying-parties.ts'
