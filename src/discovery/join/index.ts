export { bootstrapCredential } from './bootstrap-credential.ts'
export { joinCluster } from './join-cluster.ts'
export { JoinFailed, type JoinReason } from './join-failed.ts'
export type { JoinedIdentity, JoinOrder, JoinParts, JoinProgress } from './join-order.ts'
export { joinedKubeconfig } from './joined-kubeconfig.ts'
export {
  type JoinIdentity,
  organizationsOf,
  problemOfIdentity,
  usernameOf,
} from './wanted-certificate.ts'
