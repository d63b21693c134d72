import { type Readable, Transform, type Writable } from 'node:stream'

/** Is told of all bytes that pass, and says for how many milliseconds the next ones must wait. */
export type Meter = (bytes: number) => number

/**
 * Copies a stream as fast as its reader and its meter let it, and ends the other one with it. By hand, since a meter
 * holds back what `pipe` would send.
 */
export function relay(
  source: Readable,
  sink: Writable,
  meter: Meter,
  beforeEnd: () => void = () => {},
): void {
  let isFull = false
  let held: NodeJS.Timeout | undefined
  const goOn = (): void => {
    if (!isFull && held === undefined) source.resume()
  }
  sink.on('drain', () => {
    isFull = false
    goOn()
  })
  // Whoever has answered early reads no more; what is still to come must not keep the connection.
  sink.once('close', () => {
    isFull = false
    goOn()
  })
  source.on('data', (chunk: Buffer) => {
    if (sink.destroyed) return
    const waitMs = meter(chunk.length)
    isFull = !sink.write(chunk)
    if (waitMs > 0)
      held = setTimeout(() => {
        held = undefined
        goOn()
      }, waitMs)
    if (isFull || held !== undefined) source.pause()
  })
  source.once('end', () => {
    beforeEnd()
    sink.end()
  })
  source.once('close', () => clearTimeout(held))
}

/** A stream that passes everything on as fast as the meter lets it. */
export const metered = (meter: Meter): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const waitMs = meter(chunk.length)
      if (waitMs > 0) setTimeout(done, waitMs, null, chunk)
      else done(null, chunk)
    },
  })
