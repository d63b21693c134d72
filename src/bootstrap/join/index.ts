export { JoinFailed, type JoinReason } from './errors.ts'
export { joinCluster, joinedKubeconfig } from './join-cluster.ts'
export { bootstrapCredential } from './request-certificate.ts'
export type { JoinedIdentity, JoinOrder, JoinParts, JoinProgress } from './requested-certificate.ts'
export {
  type JoinIdentity,
  organizationsOf,
  problemOfIdentity,
  usernameOf,
} from './requested-certificate.ts'
