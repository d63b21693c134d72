import { ApiError, isRecord, type Kind, type Query, type WatchEvent } from '../core/index.ts'
import {
  AnswerInvalid,
  ConnectionFailed,
  connectionFailed,
  isStatus,
  statusError,
} from './errors.ts'
import { collectionPath } from './kinds.ts'
import { asKubeObject, selectionParameters } from './objects.ts'
import { Deadline, type ExchangeContext, openAnswer, parseRecord, timedOut } from './request.ts'

const newline = 0x0a

/** The lines of a byte stream; throws when one is too long or the stream ends within one. */
async function* readLines(
  source: AsyncIterable<unknown>,
  maxBytes: number,
): AsyncGenerator<Buffer> {
  let parts: Buffer[] = []
  let size = 0
  const add = (part: Buffer): void => {
    parts.push(part)
    size += part.length
    if (size > maxBytes) throw new AnswerInvalid(`an event is larger than ${maxBytes} bytes`)
  }
  for await (const chunk of source) {
    const bytes: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk))
    let start = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
      add(bytes.subarray(start, end))
      yield Buffer.concat(parts, size)
      start = end + 1
      parts = []
      size = 0
    }
    add(bytes.subarray(start))
  }
  if (size > 0) throw new ConnectionFailed('a watch ended in the middle of an event')
}

/** Watches live this long and up to twice as long, so that those of many clients do not end at once. */
const minWatchSeconds = 300
/** How long after its end a watch that the server has not ended counts as lost. */
const overtimeMs = 30_000

const eventTypes = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'] as const

/**
 * Changes after `query.from`, until the server ends the watch in good order or `signal` aborts.
 * Throws an ApiError with reason `Expired` when history no longer reaches back that far, and
 * ConnectionFailed when the connection is lost.
 */
export async function* watchObjects(
  context: ExchangeContext,
  kind: Kind,
  query: Query & { readonly from: string },
  signal: AbortSignal,
): AsyncGenerator<WatchEvent> {
  const { transport, timeoutMs, maxAnswerBytes } = context
  const seconds = Math.ceil(minWatchSeconds * (1 + Math.random()))
  const path = collectionPath(kind, query.namespace)
  const request = { method: 'GET', path, query: watchParameters(query, seconds) }
  const deadline = new Deadline(signal)
  deadline.limit(timeoutMs, () => timedOut(transport, timeoutMs))
  try {
    const { body } = await openAnswer(context, request, deadline.signal)
    deadline.limit(seconds * 1000 + overtimeMs, () => silent(transport.server))
    for await (const line of readLines(body, maxAnswerBytes)) {
      const event = eventIn(line, kind, transport.server)
      if (signal.aborted) return
      yield event
    }
  } catch (error) {
    if (signal.aborted) return
    deadline.signal.throwIfAborted()
    throw watchFailure(transport.server, error)
  } finally {
    deadline.release()
  }
}

const silent = (server: string) =>
  new ConnectionFailed(`${server} neither ended a watch in time nor said anything`)

function watchParameters(
  query: Query & { readonly from: string },
  seconds: number,
): URLSearchParams {
  const parameters = selectionParameters(query)
  parameters.set('watch', 'true')
  parameters.set('resourceVersion', query.from)
  parameters.set('allowWatchBookmarks', 'true')
  parameters.set('timeoutSeconds', String(seconds))
  return parameters
}

function watchFailure(server: string, error: unknown): Error {
  if (error instanceof AnswerInvalid) return error
  if (!(error instanceof ApiError)) return connectionFailed(server, error)
  // Both reasons of a 410 mean the same to a watcher.
  if (error.reason !== 'Gone') return error
  return new ApiError('Expired', error.message, { cause: error })
}

function eventIn(line: Buffer, kind: Kind, server: string): WatchEvent {
  const { type, object } = parseRecord(line, server)
  if (type === 'ERROR' && isRecord(object) && isStatus(object))
    throw statusError(object, { code: 500 })
  const known = eventTypes.find((each) => each === type)
  if (known) return { type: known, object: asKubeObject(object, kind) }
  throw new AnswerInvalid(`a watch of ${server} sent an event of an unknown type`)
}
