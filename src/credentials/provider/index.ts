export * from './built-in-providers.ts'
export * from './connect-context.ts'
export type * from './transport-config.ts'
export * from './transport-draft.ts'
