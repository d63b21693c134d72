export { certificateNotAfter, problemOfKeyPair } from './decode-output.ts'
export { execClusterInfo } from './exec-info.ts'
export { inspectPlugin, type PluginPlan } from './inspect-plugin.ts'
export { nodePluginHost } from './node-plugin-host.ts'
export type {
  AllowlistEntry,
  ExecClusterInfo,
  PluginHost,
  PluginPolicy,
  PluginRun,
  Runnable,
} from './plugin.ts'
export { readPluginPolicy } from './plugin-policy.ts'
export { runPlugin } from './run-plugin.ts'
