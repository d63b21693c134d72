export { oidcUsers } from './oidc-users.ts'
