export { type CallOptions, type ClientStream, type GrpcCall, GrpcConnection } from './client.ts'
export { abortedReason, type ClientTls, type GrpcTarget, targetName } from './connect.ts'
export { Heartbeat, type Keepalive } from './keepalive.ts'
export {
  defaultMaxMessageBytes,
  GrpcMessageError,
  messageLength,
  messagePrefixBytes,
} from './messages.ts'
export * from './protobuf.ts'
export {
  type Authentication,
  type CallRequest,
  createGrpcServer,
  type GrpcMethod,
  type GrpcServer,
  type GrpcServerOptions,
  type ServerCall,
} from './server.ts'
export { GrpcError, grpcStatus, type Metadata, UnreachableError } from './status.ts'
