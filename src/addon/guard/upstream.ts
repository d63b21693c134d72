import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { systemErrorCode } from '../../core/index.ts'
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

const maxSockets = 256

/** Connections to one add-on, kept open for the next request. */
export class Upstream {
  readonly #place: Place
  readonly #agent = new Agent({ keepAlive: true, maxSockets, maxFreeSockets: maxSockets })

  constructor(place: Place) {
    this.#place = place
  }

  /** Begins a request; the caller ends it. */
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
  }
}

/** Waits for the head of the answer; whoever asked has ended or is sending the body. */
export function answerOf(asked: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    asked.once('response', resolve)
    asked.once('error', reject)
  })
}

/** What a client is told of an add-on that did not answer. */
export function unanswered(error: unknown): GuardRefused {
  const code = systemErrorCode(error)
  if (code === 'ECONNREFUSED')
    return new GuardRefused(502, 'addon-unreachable', 'the add-on does not listen on its port')
  if (code?.startsWith('HPE_'))
    return new GuardRefused(502, 'addon-answer-unusable', "the add-on's answer is not HTTP")
  return new GuardRefused(502, 'addon-broke-off', 'the add-on broke off before it answered')
}
