import type { IncomingMessage } from 'node:http'
import type { RefusedUpgrade } from './transport-errors.ts'

/** More than any Status object, less than a page that nobody reads. */
const maxBytes = 64 * 1024
/** Longer than any refusal takes from its head to its end. */
const restMs = 1_000

/** Reads the answer of a server that does not change the protocol, as much of it as an error may carry. */
export function readRefusedUpgrade(message: IncomingMessage): Promise<RefusedUpgrade> {
  const { statusCode: status = 0, headers } = message
  const chunks: Buffer[] = []
  let size = 0
  return new Promise((resolve) => {
    const timer = setTimeout(() => message.destroy(), restMs)
    message.on('error', () => {}) // what has come until then is what there is
    message.on('data', (chunk: Buffer) => {
      size += chunk.length
      chunks.push(chunk)
      if (size > maxBytes) message.destroy()
    })
    message.once('close', () => {
      clearTimeout(timer)
      const body = Buffer.concat(chunks).subarray(0, maxBytes)
      resolve({ status, headers, body, whole: message.complete && size <= maxBytes })
    })
  })
}
