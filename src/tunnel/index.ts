export * from './agent/index.ts'
export { refuseProblems } from './flags.ts'
export * from './server/index.ts'
