import { type Readable, Transform, type Writable } from 'node:stream'

/** Counts the bytes that pass, and returns for how many milliseconds the next ones must wait. */
export type Meter = (bytes: number) => number

/** Counts what passes in each direction. */
export interface Meters {
  readonly toUpstream: Meter
  readonly toClient: Meter
}

/**
 * Copies a stream as fast as the reader and the meter allow, and ends `sink` with `source`. Not by `pipe`, which knows
 * no meter. Neither stream is destroyed: that is up to the owner of both.
 */
export function copyStream(
  source: Readable,
  sink: Writable,
  meter?: Meter,
  beforeEnd?: () => void,
): void {
  let isFull = false
  let timer: NodeJS.Timeout | undefined
  const resume = (): void => {
    if (!isFull && timer === undefined) source.resume()
  }
  const onRoom = (): void => {
    isFull = false
    resume()
  }
  // A sink that is closed takes no more: what is still to come is dropped and must not block its connection.
  sink.on('drain', onRoom).once('close', onRoom)
  source.on('data', (chunk: Buffer) => {
    if (sink.destroyed) return
    const waitMs = meter?.(chunk.length) ?? 0
    isFull = !sink.write(chunk)
    if (waitMs > 0)
      timer = setTimeout(() => {
        timer = undefined
        resume()
      }, waitMs)
    if (isFull || timer !== undefined) source.pause()
  })
  source.once('end', () => {
    beforeEnd?.()
    sink.end()
  })
  source.once('close', () => clearTimeout(timer))
  resume()
}

/** A stream that passes everything on as fast as the meter allows. */
export const metered = (meter: Meter): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const waitMs = meter(chunk.length)
      if (waitMs > 0) setTimeout(done, waitMs, null, chunk)
      else done(null, chunk)
    },
  })
