export type * from '../transport/types.ts'
export * from './connect-context.ts'
export * from './providers.ts'
