export {
  type CaRotationAction,
  readCaRotation,
  rotateCa,
} from './ca-rotation.ts'
export type { CaRotation, CaRotationStage } from './ca-rotation-files.ts'
export * from './certificate.ts'
export * from './issue-certificate.ts'
export * from './keys.ts'
export * from './parse-csr.ts'
export * from './pem.ts'
export * from './periodic-check.ts'
export * from './pki.ts'
export type { ServingMaterial } from './serving-certificate.ts'
export * from './serving-certificate.ts'
export { isDueForRenewal } from './serving-files.ts'
export * from './sign-csr.ts'
export { openStoreKey } from './store-key.ts'
export * from './verify-certificate.ts'
export * from './watch-files.ts'
