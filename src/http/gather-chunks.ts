import type { Readable } from 'node:stream'
import { HeldChunks } from '../core/index.ts'

/**
 * Has what arrives at once in small chunks reach the reader of `stream` in one piece. The peer chooses how small the
 * chunks of an HTTP message are, and each one that waits for its reader costs an object of some hundred bytes. By
 * overriding `push`, which the parser calls for each chunk: a listener for `data` would make the stream flow.
 */
export function gatherChunks(stream: Readable): void {
  const push = stream.push.bind(stream)
  const gathered = new HeldChunks()
  let waiting: NodeJS.Immediate | undefined
  const passOn = (): boolean => {
    clearImmediate(waiting)
    waiting = undefined
    let isMore = true
    for (const piece of gathered.take()) isMore = push(piece)
    return isMore
  }
  stream.push = (chunk: Buffer | null): boolean => {
    if (chunk === null) {
      passOn()
      return push(null)
    }
    gathered.push(chunk)
    const { readableHighWaterMark, readableLength } = stream
    if (gathered.bytes >= readableHighWaterMark) return passOn()
    waiting ??= setImmediate(passOn)
    return gathered.bytes + readableLength < readableHighWaterMark
  }
}
