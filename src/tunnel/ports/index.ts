export { HttpEndpoint, type PathHandler, sendText } from './http-endpoint.ts'
export { listen, portOf, stopListening, type TcpPlace, type UnixPlace } from './listen.ts'
export { profilingPaths } from './profiling.ts'
