export * from './add-auth.ts'
export { refuseForeignPages } from './browser-policy.ts'
