import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { rawHeaderValues, responseHead, withoutHeaders } from '../../http/index.ts'
import type { AddonUser } from '../token/addon-claims.ts'
import { tunnelHeader } from '../token/renewal.ts'
import { answerHeaders } from './answer-headers.ts'
import { outgoing } from './outgoing.ts'
import type { GuardedRequest } from './read-request.ts'
import { GuardRefused } from './refusal.ts'
import type { TunnelEnd, Tunnels } from './tunnels.ts'
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
}

/** How an upgrade ended. */
export interface UpgradeEnd {
  readonly status: number
  readonly why: TunnelEnd | 'closed' | 'refused'
}

/** Asks the add-on for the protocol, joins the two connections and waits for their end; rejects while nothing is answered. */
export async function forwardUpgrade(upgrading: Upgrading): Promise<UpgradeEnd> {
  const { request, socket, protocol, head } = upgrading
  const outcome = await ask(upgrading)
  const { answer, joined } = outcome
  if (!joined) {
    relayRefusal(answer, socket)
    return { status: answer.statusCode ?? 502, why: 'refused' }
  }
  const [agreed = '', ...others] = rawHeaderValues(answer.rawHeaders, 'upgrade')
  if (others.length > 0 || agreed.trim().toLowerCase() !== protocol.toLowerCase()) {
    joined.destroy()
    throw new GuardRefused(502, 'addon-answer-unusable', 'the add-on agreed to another protocol')
  }
  return join(upgrading, { answer, addon: joined, first: outcome.head, head, request })
}

interface Outcome {
  readonly answer: IncomingMessage
  readonly joined?: Socket
  readonly head: Buffer
}

function ask({ upstream, request, socket, protocol, read, identity }: Upgrading): Promise<Outcome> {
  const headers = [
    'Connection',
    'Upgrade',
    'Upgrade',
    protocol,
    ...outgoing(request, read, identity),
  ]
  const { method = 'GET', url = '/' } = request
  return new Promise((resolve, reject) => {
    const asked = upstream.beginAlone({ method, path: url, headers })
    const gone = (): void => void asked.destroy()
    socket.once('close', gone)
    asked.once('error', (error) => reject(unanswered(error)))
    asked.once('response', (answer) => resolve({ answer, head: Buffer.alloc(0) }))
    asked.once('upgrade', (answer, joined: Socket, head) => {
      socket.off('close', gone)
      if (socket.destroyed) joined.destroy()
      resolve({ answer, joined, head })
    })
    asked.end()
  })
}

/** An ordinary answer ends the connection: what the client has sent behind it is no request of ours. */
function relayRefusal(answer: IncomingMessage, socket: Duplex): void {
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
}

interface Ends {
  readonly answer: IncomingMessage
  readonly addon: Socket
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
    const kept = answerHeaders(answer.rawHeaders)
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
