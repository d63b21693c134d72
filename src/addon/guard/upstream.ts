import { connect, type Socket } from 'node:net'
import { type Clock, systemErrorCode } from '../../core/index.ts'
import { type ForwardPolicy, makePrivate } from '../../http/forward/index.ts'
import { endToEndHeaders } from '../../http/index.ts'
import {
  Http1Upstream,
  RequestInvalid,
  ResponseInvalid,
  type Upstream,
} from '../../http/upstream/index.ts'
import { GuardRefused, malformed } from './refusal.ts'

/** The add-on on its loopback address. */
export interface Place {
  readonly host: string
  readonly port: number
}

/** Every event stream holds one: an add-on with many readers must not run out of them. */
const maxConnections = 4_096

/** Connections to the add-on. */
export const createUpstream = (place: Place, clock: Clock): Upstream =>
  new Http1Upstream((signal) => dial(place, signal), clock, maxConnections)

function dial(place: Place, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...place, noDelay: true, signal })
    socket.once('error', reject).once('connect', () => {
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

/** How responses of the add-on are forwarded: as they are, but for one user only. */
export const forwardPolicy: ForwardPolicy = {
  responseHeaders: ({ rawHeaders }) => makePrivate(endToEndHeaders(rawHeaders)),
  failure: failureOf,
}

function failureOf(error: unknown): GuardRefused {
  if (error instanceof GuardRefused) return error
  if (error instanceof RequestInvalid) return malformed('the request cannot be forwarded')
  if (error instanceof ResponseInvalid)
    return new GuardRefused(502, 'addon-answer-unusable', "the add-on's response is not HTTP")
  if (systemErrorCode(error) === 'ECONNREFUSED')
    return new GuardRefused(502, 'addon-unreachable', 'the add-on does not listen on its port')
  return new GuardRefused(502, 'addon-broke-off', 'the add-on broke off before it responded')
}
