import type { ServerResponse } from 'node:http'
import { setImmediate as immediately } from 'node:timers/promises'

/** What may wait in memory for a client that does not read. */
const maxWaitingBytes = 2 ** 20
/** How long the making of pieces may keep everybody else waiting. */
const sliceMs = 20

/**
 * Writes pieces as fast as the client reads, and makes each only when it is needed: an answer of any
 * size costs little memory, and one that takes long to make leaves room for others in between.
 */
export async function writePaced(
  response: ServerResponse,
  pieces: Iterable<Buffer>,
  isOver: () => boolean = () => false,
): Promise<void> {
  let sliceEnd = performance.now() + sliceMs
  response.cork()
  for (const piece of pieces) {
    if (response.destroyed || isOver()) break
    const isFlowing = response.write(piece)
    const isFull = !isFlowing && response.writableLength > maxWaitingBytes
    if (!isFull && performance.now() < sliceEnd) continue
    response.uncork()
    await (isFull ? drained(response) : immediately())
    sliceEnd = performance.now() + sliceMs
    response.cork()
  }
  response.uncork()
}

/** Resolves when the client has read what was written, or has gone. */
function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
