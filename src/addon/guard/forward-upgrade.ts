import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  type AnswerHead,
  headOf,
  rawHeaderValues,
  responseHead,
  withoutHeaders,
} from '../../http/index.ts'
import { type AddonUser, tunnelHeader } from '../token/claims.ts'
import { answerHeaders } from './answer-headers.ts'
import { outgoing } from './outgoing.ts'
import type { GuardedRequest } from './read-request.ts'
import { GuardRefused } from './refusal.ts'
import type { TunnelEnd, Tunnels } from './upgraded-connections.ts'
import { type Upstream, unanswered } from './upstream.ts'

/** A known user's request for another protocol. */
export interface Upgrading {
  readonly upstream: Upstream
  readonly tunnels: Tunnels
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** What the client has sent behind its request: kept back until the add-on has agreed. */
  readonly head: Buffer
  readonly protocol: string
  readonly read: GuardedRequest
  readonly user: AddonUser
  readonly identity: readonly string[]
  readonly idleMs: number
  /** Aborts when there should have been an answer: once there is a tunnel, that has its own limits. */
  readonly late: AbortSignal
}

/** How an upgrade ended. */
export interface UpgradeEnd {
  readonly status: number
  readonly why: TunnelEnd | 'closed' | 'refused'
}

/** Asks the add-on for the protocol, joins the two connections and waits for their end; rejects while nothing is answered. */
export async function forwardUpgrade(upgrading: Upgrading): Promise<UpgradeEnd> {
  const { request, socket, protocol, head } = upgrading
  const { answer, switched } = await ask(upgrading)
  if (!switched) {
    relayRefusal(answer, upgrading)
    return { status: answer.statusCode ?? 502, why: 'refused' }
  }
  const { socket: addon, head: first } = switched
  const [agreed = '', ...others] = rawHeaderValues(answer.rawHeaders, 'upgrade')
  if (others.length > 0 || agreed.trim().toLowerCase() !== protocol.toLowerCase()) {
    addon.destroy()
    throw new GuardRefused(502, 'addon-answer-unusable', 'the add-on agreed to another protocol')
  }
  if (socket.destroyed) addon.destroy()
  return join(upgrading, { answer, addon, first, head, request })
}

async function ask(upgrading: Upgrading): Promise<AnswerHead> {
  const { upstream, request, socket, protocol, read, identity, late } = upgrading
  const own = ['Connection', 'Upgrade', 'Upgrade', protocol]
  const headers = [...own, ...outgoing(request, read, identity)]
  const { method = 'GET', url = '/' } = request
  const asked = upstream.beginAlone({ method, path: url, headers })
  const gone = (): void => void asked.destroy()
  socket.once('close', gone)
  asked.end()
  try {
    return await headOf(asked, late)
  } catch (error) {
    throw unanswered(error)
  } finally {
    socket.off('close', gone)
  }
}

/** An ordinary answer ends the connection: what the client has sent behind it is no request of ours. */
function relayRefusal(answer: IncomingMessage, { socket, late }: Upgrading): void {
  const kept = withoutHeaders(answerHeaders(answer.rawHeaders), (name) =>
    /^content-length$/i.test(name),
  )
  socket.write(responseHead(answer.statusCode ?? 502, [...kept, 'Connection', 'close']), 'latin1')
  socket.resume()
  answer.on('data', (chunk: Buffer) => {
    if (!socket.write(chunk)) answer.pause()
  })
  socket.on('drain', () => answer.resume())
  answer.once('close', () => socket.end(() => socket.destroy()))
  socket.once('close', () => answer.destroy())
  late.addEventListener('abort', () => socket.destroy(), { once: true })
  if (late.aborted) socket.destroy()
}

interface Ends {
  readonly answer: IncomingMessage
  readonly addon: Duplex
  /** What the add-on has sent behind its answer. */
  readonly first: Buffer
  readonly head: Buffer
  readonly request: IncomingMessage
}

function join(
  { socket, tunnels, user, protocol, idleMs }: Upgrading,
  ends: Ends,
): Promise<UpgradeEnd> {
  const { answer, addon, first, head, request } = ends
  return new Promise((resolve) => {
    let why: UpgradeEnd['why'] = 'closed'
    const cutBoth = (): void => {
      socket.destroy()
      addon.destroy()
    }
    const { id, ended } = tunnels.add(user, (reason) => {
      why = reason
      cutBoth()
    })
    const onIdle = (): void => {
      why = 'idle'
      cutBoth()
    }
    // Whatever the add-on says is written here, so this end is idle only when both are.
    request.socket.setTimeout(idleMs, onIdle)
    const kept = withoutHeaders(answerHeaders(answer.rawHeaders), isTunnelHeader)
    const own = ['Upgrade', protocol, 'Connection', 'Upgrade', tunnelHeader, id]
    socket.write(responseHead(answer.statusCode ?? 502, [...own, ...kept]), 'latin1')
    if (first.length > 0) socket.write(first)
    if (head.length > 0) addon.write(head)
    let open = 2
    const closed = (): void => {
      cutBoth()
      open -= 1
      if (open > 0) return
      ended()
      resolve({ status: 101, why })
    }
    socket.once('close', closed).on('error', cutBoth)
    addon.once('close', closed).on('error', cutBoth)
    socket.pipe(addon)
    addon.pipe(socket)
  })
}

const isTunnelHeader = (name: string): boolean => name.toLowerCase() === tunnelHeader.toLowerCase()
