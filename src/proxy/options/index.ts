export { filterDefaults, proxyOptions } from './proxy-options.ts'
