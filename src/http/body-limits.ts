import type { IncomingMessage, ServerResponse } from 'node:http'
import { gatherChunks } from './gather-chunks.ts'
import { responseHead } from './headers.ts'

/** What a request body may cost while it arrives. */
export interface BodyPace {
  /** In this time a body must bring `minBodyBytes`, unless its reader keeps it waiting; 0 for no limit. */
  readonly bodyIdleMs: number
}

/** Less than this in `bodyIdleMs` is a body that only holds a connection. */
const minBodyBytes = 4 * 1024
/** How often a body is looked at within `bodyIdleMs`. */
const looks = 4
/** Of chunk sizes, line breaks and extensions: for each chunk, and in all besides. What one read may bring is in it. */
const maxChunkOverheadBytes = 32
const maxOverheadBytes = 128 * 1024

/** What is wrong with a body: extensions larger than any data, or data that comes too slowly. */
export type BodyProblem = 'overhead' | 'stalled'

/**
 * Watches the body of an HTTP/1 request while it arrives, and reports its first problem. Node bounds the extensions
 * of one chunk, but not those of all chunks together, and does not expose them; so the bytes of the connection are
 * compared with those of the body. By overriding `push`, which the parser calls for each chunk: a listener for `data`
 * would make the body flow before its handler reads it. Small chunks are gathered.
 */
export function watchBody(
  request: IncomingMessage,
  { bodyIdleMs }: BodyPace,
  report: (problem: BodyProblem) => void,
): void {
  const { socket } = request
  gatherChunks(request)
  const push = request.push.bind(request)
  const start = socket.bytesRead
  let chunks = 0
  let bytes = 0
  let timer: NodeJS.Timeout | undefined
  const fail = (problem: BodyProblem): void => {
    request.push = push
    clearInterval(timer)
    report(problem)
  }
  request.push = (chunk: Buffer | null): boolean => {
    const isMore = push(chunk)
    if (chunk === null) {
      clearInterval(timer)
      return isMore
    }
    chunks += 1
    bytes += chunk.length
    const overhead = socket.bytesRead - start - bytes
    if (overhead > maxOverheadBytes + chunks * maxChunkOverheadBytes) fail('overhead')
    return isMore
  }
  if (bodyIdleMs === 0) return
  let marks = fresh()
  timer = setInterval(() => {
    const before = marks.shift() ?? 0
    marks.push(bytes)
    // A body that waits for its handler is not the fault of the client.
    if (request.readableLength > 0 || request.isPaused()) marks = fresh()
    else if (bytes - before < minBodyBytes) fail('stalled')
  }, bodyIdleMs / looks).unref()
  request.once('close', () => clearInterval(timer))
}

const fresh = (): number[] => Array.from({ length: looks }, () => Number.NEGATIVE_INFINITY)

const statusOf = { overhead: 400, stalled: 408 } as const

/** Ends a connection whose body has a problem; the handler of its request sees a client that disconnected. */
export function endByBodyProblem(
  { socket }: IncomingMessage,
  response: ServerResponse,
  problem: BodyProblem,
): void {
  if (response.headersSent) socket.destroy()
  else
    socket.end(
      responseHead(statusOf[problem], ['Connection', 'close', 'Content-Length', '0']),
      () => socket.destroy(),
    )
}
