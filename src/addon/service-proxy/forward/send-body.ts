import type { ServerResponse } from 'node:http'
import { pipeline, type Readable, type Transform } from 'node:stream'
import { keptTrailers } from '../../../http/index.ts'
import { htmlStreams } from '../rewrite/html-stream.ts'
import { rewriteUrl } from '../rewrite/rewrite-url.ts'
import type { BackendAnswer } from './backend-answer.ts'
import type { Forwarding } from './exchange.ts'
import { type Meter, metered, relay } from './relay.ts'

/** An answer on its way back, and what is done with it. */
export interface Passing {
  readonly forwarding: Forwarding
  readonly answer: BackendAnswer
  readonly response: ServerResponse
  /** How the page is packed that is to be rewritten; absent for all other answers. */
  readonly pageCoding: string | undefined
  /** The names of the trailers that it will have. */
  readonly trailers: readonly string[]
}

/** Up to here a body goes out with its head as one text, which is one write less. */
const smallBody = 16 * 1024

/** Sends a body of which all is here, behind its head; resolves when the client has all of it or is gone. */
export function sendWhole(passing: Passing, body: Buffer): Promise<void> {
  const { forwarding, response } = passing
  const { meters, signal } = forwarding
  return new Promise((resolve) => {
    const cut = cutter(response)
    let held: NodeJS.Timeout | undefined
    response.once('close', () => {
      clearTimeout(held)
      resolve()
    })
    signal.addEventListener('abort', cut, { once: true })
    if (signal.aborted) cut()
    if (response.destroyed) return
    const end = (): void => {
      if (response.destroyed) return
      addTrailers(passing)
      response.end()
    }
    const waitMs = meters.toClient(body.length)
    if (waitMs > 0) held = setTimeout(end, waitMs)
    // Once it is written: Node would write the end, which is nothing, as a second piece.
    const written = waitMs > 0 ? () => {} : end
    if (body.length === 0) written()
    else if (body.length > smallBody) response.write(body, written)
    else response.write(body.toString('latin1'), 'latin1', written)
  })
}

/** Sends a body as it comes; resolves when the client has all of it or is gone. */
export function sendStream(passing: Passing, source: Readable): Promise<void> {
  const { forwarding, response, pageCoding } = passing
  const { meters, signal } = forwarding
  return new Promise((resolve) => {
    const cutResponse = cutter(response)
    const cut = (): void => {
      source.destroy()
      cutResponse()
    }
    response.once('close', () => {
      source.destroy()
      resolve()
    })
    signal.addEventListener('abort', cut, { once: true })
    source.once('close', () => {
      // What breaks off at the backend breaks off at the client too.
      if (!source.readableEnded) cut()
    })
    const body = pageCoding === undefined ? source : rewritten(source, pageCoding, forwarding)
    body.on('error', cut)
    // It may have broken off together with its head.
    if (signal.aborted || (source.destroyed && !source.readableEnded)) cut()
    let hasBegun = false
    body.once('data', () => {
      hasBegun = true
    })
    relay(body, response, pageCoding === undefined ? meters.toClient : unmetered, () =>
      addTrailers(passing),
    )
    // Whoever waits for an event must know that it is open; but a body that is here goes with its head in one piece.
    setImmediate(() => {
      if (!hasBegun && !response.destroyed && !response.writableEnded) response.flushHeaders()
    })
  })
}

const cutter = (response: ServerResponse) => (): void => {
  if (!response.writableEnded) response.destroy(new Error('the answer broke off'))
}

function addTrailers({ answer, response, trailers }: Passing): void {
  if (trailers.length === 0) return
  const kept = keptTrailers(answer.trailers(), trailers)
  if (kept.length > 0) response.addTrailers(kept)
}

const unmetered: Meter = () => 0

/**
 * A packed page counts as what it is and as what it unpacks to: a few bytes may stand for a page without end, and many
 * for nothing at all, and each of them costs us.
 */
function rewritten(source: Readable, coding: string, { places, meters }: Forwarding): Readable {
  const [first, ...others] = htmlStreams(coding, (url) => rewriteUrl(url, places))
  const counting = (): Transform => metered(meters.toClient)
  const isPacked = others.length > 0
  let last = source
  for (const stream of [...(isPacked ? [counting()] : []), first, counting(), ...others])
    last = pipeline(last, stream, () => {})
  return last
}
