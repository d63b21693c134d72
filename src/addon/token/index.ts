export * from './claims.ts'
export * from './mint.ts'
export * from './signers.ts'
export * from './signing-key.ts'
