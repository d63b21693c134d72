export { bootstrapCredential } from './bootstrap-credential.ts'
export {
  type JoinedIdentity,
  type JoinOrder,
  type JoinParts,
  type JoinProgress,
  joinCluster,
} from './join-cluster.ts'
export { JoinFailed, type JoinReason } from './join-failed.ts'
export { joinedKubeconfig } from './joined-kubeconfig.ts'
export { type JoinIdentity, problemOfIdentity, usernameOf } from './wanted-certificate.ts'
