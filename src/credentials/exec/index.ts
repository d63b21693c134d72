export { nodePluginHost } from './node-plugin-host.ts'
export type { AllowlistEntry, PluginPolicy } from './plugin-policy.ts'
export type { ExecClusterInfo, PluginHost, PluginRun, Runnable } from './plugin-run.ts'
