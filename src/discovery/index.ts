export * from './signing/detached-signature.ts'
export * from './signing/discovery-jwt.ts'
export * from './tokens/bootstrap-token.ts'
export * from './tokens/stored-token.ts'
