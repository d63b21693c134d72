export type { Keepalive } from '../../grpc/index.ts'
export { connectLink } from '../link/grpc-link.ts'
export { createGrpcService, type GrpcService, type GrpcServiceOptions } from './grpc-service.ts'
export type * from './options.ts'
