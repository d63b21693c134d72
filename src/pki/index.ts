export * from './issue-certificate.ts'
export * from './keys.ts'
export * from './open-pki.ts'
export * from './pem.ts'
