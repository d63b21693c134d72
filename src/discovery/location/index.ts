export {
  type ClusterInfo,
  changeClusterInfo,
  readClusterInfo,
  withAddresses,
  withoutRoot,
  withRoots,
} from './change-cluster-info.ts'
export {
  type ClusterInfoKeeper,
  createClusterInfoController,
  keepClusterInfo,
} from './keep-cluster-info.ts'
export { type RootReport, rootPins, rootReports } from './root-certificates.ts'
