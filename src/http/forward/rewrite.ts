import type { ServerResponse } from 'node:http'
import { pipeline, type Readable, type Transform } from 'node:stream'
import { copyStream } from '../copy-stream.ts'

/** Sends a body through streams that rewrite it, and ends the response with it. */
export function sendRewritten(
  source: Readable,
  transforms: readonly Transform[],
  response: ServerResponse,
  { beforeEnd, breakOff }: { readonly beforeEnd: () => void; readonly breakOff: () => void },
): void {
  let last = source
  for (const transform of transforms) last = pipeline(last, transform, () => {})
  let hasBegun = false
  last.once('data', () => {
    hasBegun = true
  })
  last.on('error', breakOff)
  source.once('close', () => {
    if (!source.readableEnded) breakOff()
  })
  copyStream(last, response, undefined, beforeEnd)
  // A page may come slowly; but what is here already is sent with its head in one piece.
  setImmediate(() => {
    if (!hasBegun && !response.destroyed && !response.writableEnded) response.flushHeaders()
  })
}
