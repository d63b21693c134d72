import { excerpt, quotePeer } from '../../core/index.ts'
import type { HeaderField } from '../../grpc/http2/index.ts'
import { grpcStatus, headerOf } from '../../grpc/index.ts'
import type { StreamPath } from './options.ts'

/** Why a request cannot be served. */
export interface RequestFault {
  readonly httpStatus: number
  readonly grpcStatus: number
  readonly message: string
}

/** What is wrong with a request before anybody looks at who sent it, in grpc-go's words. */
export function requestFault(
  fields: readonly HeaderField[],
  served: StreamPath,
): RequestFault | undefined {
  const contentType = headerOf(fields, 'content-type') ?? ''
  if (!/^application\/grpc(?:$|[+;])/.test(contentType))
    return {
      httpStatus: 415,
      grpcStatus: grpcStatus.internal,
      message: `invalid gRPC request content-type ${quotePeer(contentType)}`,
    }
  const method = headerOf(fields, ':method')
  if (method !== 'POST')
    return {
      httpStatus: 405,
      grpcStatus: grpcStatus.internal,
      message: `Received a HEADERS frame with :method ${quotePeer(method)} which should be POST`,
    }
  const path = headerOf(fields, ':path') ?? ''
  if (path === served) return undefined
  const [, service = '', name = ''] = path.split('/')
  const message = served.startsWith(`/${service}/`)
    ? `unknown method ${excerpt(name)} for service ${excerpt(service)}`
    : `unknown service ${excerpt(service)}`
  return { httpStatus: 200, grpcStatus: grpcStatus.unimplemented, message }
}
