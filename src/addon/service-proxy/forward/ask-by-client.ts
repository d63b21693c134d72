import { type ClientRequest, type IncomingMessage, request as openRequest } from 'node:http'
import { headOf } from '../../../http/index.ts'
import { maxHeadBytes } from '../../wire/index.ts'
import { answerIn, type BackendAnswer } from './backend-answer.ts'
import { type Forwarding, unreachable } from './exchange.ts'
import { relay } from './relay.ts'

/** Asks a backend by Node's client, which knows how to send bodies; rejects while nothing has been answered. */
export async function askByClient(forwarding: Forwarding): Promise<BackendAnswer> {
  const outgoing = open(forwarding)
  try {
    return answerIn(await answerTo(outgoing, forwarding))
  } catch (error) {
    forwarding.signal.throwIfAborted()
    throw unreachable(error)
  }
}

function open({ connections, backend, request, path, headers }: Forwarding): ClientRequest {
  return openRequest({
    agent: connections.agentFor(backend),
    protocol: `${backend.scheme}:`,
    host: backend.host,
    port: backend.port,
    method: request.method,
    path,
    headers: [...headers],
    maxHeaderSize: maxHeadBytes,
  })
}

async function answerTo(
  outgoing: ClientRequest,
  { request, signal, meters }: Forwarding,
): Promise<IncomingMessage> {
  const awaited = headOf(outgoing, signal)
  request.once('error', () => outgoing.destroy())
  relay(request, outgoing, meters.toBackend)
  const { answer, switched } = await awaited
  if (switched) {
    switched.socket.destroy()
    throw new Error('it changed to a protocol that nobody asked for')
  }
  // A backend that has said all wants no more: what is left of the body would wait for it in vain.
  answer.once('end', () => {
    if (!outgoing.writableFinished) outgoing.destroy()
  })
  return answer
}
