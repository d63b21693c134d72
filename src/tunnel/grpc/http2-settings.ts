import type { Settings } from 'node:http2'

const mebibyte = 1024 * 1024

/** What the other end may send on one connection before we have read any of it. */
export const connectionWindowBytes = 64 * mebibyte

/**
 * Links are always read at once and bounded per channel, so HTTP/2's own windows only have to be out of the way:
 * with the default of 64 KiB a path of 20 ms carries 3 MB/s.
 */
export const http2Settings: Settings = {
  initialWindowSize: 32 * mebibyte,
  enablePush: false,
}

/** In units of 1 MB; node's default of 10 refuses streams as soon as windows are this large. */
export const maxSessionMemory = 1_000

/** The content type of every request and answer. */
export const grpcContentType = 'application/grpc'
