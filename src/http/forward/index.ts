export { type ForwardOptions, type ForwardPolicy, forward } from './forwarder.ts'
export { forwarderHeaders, makePrivate } from './headers.ts'
export { forwardUpgrade, type UpgradeResult } from './splice.ts'
