export * from './agent/index.ts'
