export { checkFeatureGate, readFeatureGates } from './feature-gates.ts'
export { klogOptions } from './klog-options.ts'
export { refuseProblems } from './refuse-problems.ts'
