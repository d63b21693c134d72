export type { CaRotation, CaRotationStage } from './ca-rotation-files.ts'
export * from './certificate-refused.ts'
export * from './issue-certificate.ts'
export * from './keys.ts'
export * from './open-pki.ts'
export * from './parse-csr.ts'
export * from './peer-certificates.ts'
export * from './pem.ts'
export * from './periodic-check.ts'
export {
  type CaRotationAction,
  readCaRotation,
  rotateCa,
} from './rotate-ca.ts'
export * from './serving-certificate.ts'
export { isDueForRenewal } from './serving-files.ts'
export type { ServingMaterial } from './serving-material.ts'
export * from './sign-csr.ts'
export * from './spki-pin.ts'
export * from './verify-client-certificate.ts'
export * from './verify-server-certificate.ts'
export * from './watch-files.ts'
