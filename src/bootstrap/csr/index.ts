export {
  type CertificateControllerParts,
  createCertificateController,
} from './csr-controller.ts'
export { joinAdmission } from './join-admission.ts'
export { createNodeNameCleaner, nodeNameAdmission } from './node-names.ts'
