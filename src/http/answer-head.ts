import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** The head of an answer, and the connection if that now speaks another protocol. */
export interface AnswerHead {
  readonly answer: IncomingMessage
  readonly switched?: { readonly socket: Duplex; readonly head: Buffer }
}

/** Early hints and the like are no answer, and without a limit a server could send nothing else. */
const maxHints = 100

/**
 * Waits for the head of the answer to a request, to whom nobody need listen for errors any more. Rejects with the
 * signal's reason when that aborts first.
 */
export function headOf(outgoing: ClientRequest, signal?: AbortSignal): Promise<AnswerHead> {
  return new Promise((resolve, reject) => {
    let hints = 0
    let isAnswered = false
    const answered = (head: AnswerHead): void => {
      isAnswered = true
      resolve(head)
    }
    outgoing.on('information', () => {
      hints += 1
      if (hints > maxHints) outgoing.destroy(new Error('it gives hints and no answer'))
    })
    outgoing.once('response', (answer) => {
      if ((answer.statusCode ?? 0) >= 200) answered({ answer })
      else outgoing.destroy(noStatus())
    })
    outgoing.once('upgrade', (answer, socket: Duplex, head) =>
      answered({ answer, switched: { socket, head } }),
    )
    outgoing.on('error', reject) // stays: a cut after the answer's head is reported here as well
    // Not by Node's option: its requests do not notice an abort before they have a connection.
    const abort = (): void => {
      outgoing.destroy()
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
    outgoing.once('close', () => {
      signal?.removeEventListener('abort', abort)
      // An error is dear to make, and this comes after every answer too.
      if (!isAnswered) reject(new Error('it closed the connection'))
    })
  })
}

/** Node's parser takes any three digits; the code is of its kind. */
const noStatus = (): Error =>
  Object.assign(new Error('the status of the answer is none'), { code: 'HPE_INVALID_STATUS' })
