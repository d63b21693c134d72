export { connectLink } from './connect-link.ts'
export { createGrpcService, type GrpcService, type GrpcServiceOptions } from './grpc-service.ts'
export type * from './options.ts'
