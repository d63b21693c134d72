export * from '../certificate-refused.ts'
export { parseCertificates } from '../pem.ts'
export * from '../verify-server-certificate.ts'
export { watchFiles } from '../watch-files.ts'
