export { connectLink } from './connect-link.ts'
export { LinkBroken, LinkRefused, LinkUnreachable } from './errors.ts'
export { createGrpcService, type GrpcService, type GrpcServiceOptions } from './grpc-service.ts'
export type * from './options.ts'
