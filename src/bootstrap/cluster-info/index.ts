export {
  type ClusterInfo,
  changeClusterInfo,
  readClusterInfo,
  withAddresses,
  withoutRoot,
  withRoots,
} from './change.ts'
export { type RootReport, rootPins, rootReports } from './cluster-info.ts'
export {
  type ClusterInfoKeeper,
  createClusterInfoController,
  keepClusterInfo,
} from './cluster-info-controller.ts'
