import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'
import { responseHead } from '../http/index.ts'
import { answerHeaders } from './answer-headers.ts'
import type { ForwardParts, ForwardPlan } from './forward.ts'
import type { UpgradeOutcome } from './proxy-upstream.ts'
import { requestHeaders } from './request-headers.ts'

/** What Go, and so kubectl, does where no period is asked for. */
const defaultKeepAliveMs = 15_000

/** A client's connection that asks for another protocol. */
export interface UpgradingClient {
  readonly request: IncomingMessage
  readonly socket: Duplex
  /** What the client has sent behind its request: kept back until the server has agreed. */
  readonly head: Buffer
  readonly protocol: string
}

/** Asks the API server for the protocol and joins the two connections; rejects while nothing is answered. */
export async function forwardUpgrade(
  parts: ForwardParts,
  plan: ForwardPlan,
  client: UpgradingClient,
  keepAliveMs: number,
): Promise<void> {
  const { request, socket, protocol } = client
  const gone = new AbortController()
  const onGone = (): void => gone.abort()
  socket.once('close', onGone)
  const outcome = await parts.upstream.upgrade({
    method: request.method ?? 'GET',
    path: plan.path,
    headers: {
      ...requestHeaders(request, plan, parts),
      connection: 'Upgrade',
      upgrade: protocol,
    },
    ...(plan.place.kind !== 'api' && { relayed: true }),
    signal: gone.signal,
  })
  socket.off('close', onGone)
  const kept = answerHeaders(outcome.headers, plan.place, parts)
  if (outcome.kind === 'refused') {
    relayRefusal(outcome, kept, socket)
    return
  }
  keepAlive([socket, outcome.socket], keepAliveMs)
  join(outcome, kept, client)
}

/** An ordinary answer ends the connection: what the client has sent behind it is no request of ours. */
function relayRefusal(
  { status, body }: Extract<UpgradeOutcome, { kind: 'refused' }>,
  kept: readonly string[],
  socket: Duplex,
): void {
  socket.write(responseHead(status, [...kept, 'Connection', 'close']), 'latin1')
  socket.resume()
  pipeline(body, socket, () => socket.destroy())
}

function join(
  { socket: server }: Extract<UpgradeOutcome, { kind: 'switched' }>,
  kept: readonly string[],
  { socket, head, protocol }: UpgradingClient,
): void {
  socket.write(responseHead(101, ['Upgrade', protocol, 'Connection', 'Upgrade', ...kept]), 'latin1')
  if (head.length > 0) server.write(head)
  // Each direction ends by itself; a cut on one side is a cut on the other.
  const cut = (): void => {
    socket.destroy()
    server.destroy()
  }
  socket.once('close', cut).on('error', cut)
  server.once('close', cut).on('error', cut)
  socket.pipe(server)
  server.pipe(socket)
}

function keepAlive(sockets: readonly Duplex[], periodMs: number): void {
  for (const socket of sockets)
    if (socket instanceof Socket) socket.setKeepAlive(true, periodMs || defaultKeepAliveMs)
}
