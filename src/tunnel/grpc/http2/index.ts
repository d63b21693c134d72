export type { HeaderField } from './hpack-decoder.ts'
export { Http2Connection } from './http2-connection.ts'
export { errorCode } from './http2-error.ts'
export type { Http2Stream, StreamEnding } from './http2-stream.ts'
