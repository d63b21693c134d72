import type { Writable } from 'node:stream'
import { type AuditSink, maxBufferedAuditBytes } from './audit-recorder.ts'

/** Writes audit lines to a stream that belongs to somebody else, such as the standard output. */
export function auditToStream(
  stream: Writable,
  maxBufferedBytes = maxBufferedAuditBytes,
): AuditSink {
  let dropped = 0
  return {
    write(line) {
      if (stream.writableLength > maxBufferedBytes || stream.destroyed) dropped++
      else stream.write(line)
    },
    get dropped() {
      return dropped
    },
    close: () =>
      new Promise((resolve) => {
        if (stream.destroyed) resolve()
        else stream.write('', () => resolve())
      }),
  }
}
