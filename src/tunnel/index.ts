export * from './agent/index.ts'
export * from './server/index.ts'
