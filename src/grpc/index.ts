export { decodeGrpcMessage, encodeGrpcMessage, grpcStatus } from './grpc-status.ts'
export { Heartbeat, type Keepalive } from './keepalive.ts'
export { fieldsOf, grpcContentType, headerOf, metadataOf } from './metadata.ts'
