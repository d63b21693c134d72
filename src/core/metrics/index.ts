export type * from './metric-kinds.ts'
export * from './metrics-registry.ts'
