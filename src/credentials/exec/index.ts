export { execClusterInfo } from './cluster-info.ts'
export { inspectPlugin, type PluginPlan } from './inspect-plugin.ts'
export { certificateNotAfter, problemOfKeyPair } from './key-pair.ts'
export { nodePluginHost } from './node-plugin-host.ts'
export { readPluginPolicy } from './plugin-policy.ts'
export type {
  AllowlistEntry,
  ExecClusterInfo,
  PluginHost,
  PluginPolicy,
  PluginRun,
  Runnable,
} from './plugin-run.ts'
export { runPlugin } from './run-plugin.ts'
