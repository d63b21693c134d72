import { Agent, type ClientRequest, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type Clock, systemErrorCode } from '../../core/index.ts'
import { type AnswerListener, AnswerUnusable, type WireExchange, WirePool } from '../wire/index.ts'
import { GuardRefused } from './refusal.ts'

/** The add-on on its loopback address. */
export interface Place {
  readonly host: string
  readonly port: number
}

/** A request to the add-on. */
export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  /** Flat, with Host and framing. */
  readonly headers: string[]
}

/** Every event stream holds one: an add-on that has many readers must not run out of them. */
const maxSockets = 4_096

/** Connections to one add-on, kept open for the next request. */
export class Upstream {
  readonly #place: Place
  readonly #wire: WirePool
  readonly #agent = new Agent({ keepAlive: true, maxSockets, maxFreeSockets: maxSockets })

  constructor(place: Place, clock: Clock) {
    this.#place = place
    this.#wire = new WirePool((signal) => dial(place, signal), clock, maxSockets)
  }

  /** Sends a request without a body. */
  ask({ method, path, headers }: UpstreamRequest, listener: AnswerListener): WireExchange {
    let head = `${method} ${path} HTTP/1.1\r\n`
    for (let index = 0; index + 1 < headers.length; index += 2)
      head += `${headers[index]}: ${headers[index + 1]}\r\n`
    return this.#wire.ask(`${head}\r\n`, method === 'HEAD', listener)
  }

  /** Begins a request with a body; the caller ends it. */
  begin({ method, path, headers }: UpstreamRequest): ClientRequest {
    return request({ ...this.#place, method, path, headers, agent: this.#agent })
  }

  /** Begins a request on a connection of its own, which may then speak another protocol. */
  beginAlone({ method, path, headers }: UpstreamRequest): ClientRequest {
    return request({ ...this.#place, method, path, headers, agent: false })
  }

  /** Cuts every connection. */
  destroy(): void {
    this.#agent.destroy()
    this.#wire.destroy()
  }
}

function dial(place: Place, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...place, noDelay: true, signal })
    socket.once('error', reject).once('connect', () => resolve(socket))
  })
}

/** What a client is told of an add-on that did not answer. */
export function unanswered(error: unknown): GuardRefused {
  if (error instanceof GuardRefused) return error
  const code = systemErrorCode(error)
  if (code === 'ECONNREFUSED')
    return new GuardRefused(502, 'addon-unreachable', 'the add-on does not listen on its port')
  if (error instanceof AnswerUnusable || code?.startsWith('HPE_'))
    return new GuardRefused(502, 'addon-answer-unusable', "the add-on's answer is not HTTP")
  return new GuardRefused(502, 'addon-broke-off', 'the add-on broke off before it answered')
}
