import { defineKind, statusSubresource } from './define-kind.ts'

/** The kind CertificateSigningRequest. */
export const certificateSigningRequest = defineKind({
  kind: {
    group: 'certificates.k8s.io',
    version: 'v1',
    kind: 'CertificateSigningRequest',
    resource: 'certificatesigningrequests',
    namespaced: false,
  },
  shortNames: ['csr'],
  subresources: [statusSubresource({ name: 'approval' }), statusSubresource()],
})
