export {
  type CertificateControllerParts,
  createCertificateController,
} from './certificate-controller.ts'
export { joinAdmission } from './join-admission.ts'
