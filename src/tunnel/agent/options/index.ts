export { type TunnelAgentOptions, tunnelAgentOptions, tunnelAgentOptionValues } from './options.ts'
export { bindAddressWarning, problemsOfTunnelAgentOptions } from './validate.ts'
export { parseServerHost, parseTarget, type Target } from './values.ts'
