export { checkHostPort, type HostPort, parseHostPort, showHostPort } from './host-port.ts'
export { networkOf, parseIp, parseIpRange } from './ip-range.ts'
export { plainAddress, sourceOf } from './source.ts'
