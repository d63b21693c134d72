export {
  type CertificateControllerParts,
  createCertificateController,
} from './csr-controller.ts'
export { joinAdmission } from './join-admission.ts'
