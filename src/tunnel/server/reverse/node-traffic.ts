import type { Logger } from '../../../core/index.ts'
import { type IncomingDial, type Leg, socketLeg } from '../../link/index.ts'
import type { HostPort } from '../../protocol/index.ts'
import type { SniRoute } from '../options/index.ts'
import type { CarriedFields } from '../tunnel-hub.ts'
import { AllowList } from './allow-list.ts'
import { type HelloReading, readClientHello } from './client-hello.ts'
import { connectTcp, TargetUnreachable } from './connect-tcp.ts'
import { PeekLeg } from './peek-leg.ts'
import { SniRoutes } from './sni-routes.ts'

/** What answers the dials of agents. */
export interface NodeTrafficParts {
  /** Off means that every dial is refused. */
  readonly isOn: boolean
  readonly allowedDestinations: readonly string[]
  readonly sniRoutes: readonly SniRoute[]
  /** Joins both sides and counts the connection. */
  readonly carry: (near: Leg, far: Leg, fields: CarriedFields) => Promise<void>
  readonly log: Logger
  readonly dialTimeoutMs?: number
}

const defaultDialTimeoutMs = 5_000
const helloLimits = { maxBytes: 32 * 1024, timeoutMs: 10_000 }

/** Traffic from nodes to the control plane: answers what agents dial, if the place is on the list. */
export class NodeTraffic {
  readonly #parts: NodeTrafficParts
  readonly #allowed: AllowList
  readonly #routes: SniRoutes

  constructor(parts: NodeTrafficParts) {
    this.#parts = parts
    this.#allowed = new AllowList(parts.allowedDestinations)
    this.#routes = new SniRoutes(parts.sniRoutes)
  }

  /** Answers a dial of the agent `agentId`. */
  handle(dial: IncomingDial, agentId: string): void {
    const log = this.#parts.log.child({ agentId, address: dial.address })
    const allowed = this.#allowedTarget(dial)
    if ('refusal' in allowed) {
      log.warn({ why: allowed.refusal }, 'dial of an agent refused')
      dial.refuse(allowed.refusal)
      return
    }
    const served = this.#routes.isEmpty
      ? this.#connectFirst(dial, allowed)
      : this.#acceptFirst(dial, allowed)
    served.catch((error: unknown) => {
      if (!(error instanceof TargetUnreachable))
        log.error({ err: error }, 'dial of an agent failed')
      else log.info({ why: error.message }, 'dial of an agent failed')
    })
  }

  #allowedTarget({ protocol, address }: IncomingDial): HostPort | { readonly refusal: string } {
    if (!this.#parts.isOn) {
      return { refusal: 'traffic from nodes to the control plane is switched off on this server' }
    }
    if (protocol !== 'tcp') return { refusal: `unsupported protocol ${JSON.stringify(protocol)}` }
    const target = this.#allowed.find(address)
    return target ?? { refusal: `destination ${JSON.stringify(address)} is not allowed` }
  }

  async #connectFirst(dial: IncomingDial, target: HostPort): Promise<void> {
    const { signal, address } = dial
    let socket: Awaited<ReturnType<typeof connectTcp>>
    try {
      socket = await this.#connect(target, signal)
    } catch (error) {
      const text = error instanceof TargetUnreachable ? error.message : 'internal error'
      dial.refuse(`dial tcp ${address}: ${text}`)
      throw error
    }
    const near = dial.accept()
    if (near) await this.#parts.carry(near, socketLeg(socket), { from: 'agent', address })
    else socket.destroy()
  }

  /** With routes, the client has to speak before its target is known. */
  async #acceptFirst(dial: IncomingDial, fallback: HostPort): Promise<void> {
    const { address } = dial
    const channel = dial.accept()
    if (!channel) return
    const near = new PeekLeg(channel)
    let reading: HelloReading = { state: 'incomplete' }
    const end = await near.peek((bytes) => {
      reading = readClientHello(bytes)
      return reading.state !== 'incomplete'
    }, helloLimits)
    if (end === 'closed') return
    if (end !== 'enough') {
      near.close(new TargetUnreachable(`no ClientHello to route by (${end})`))
      return
    }
    const target = this.#targetOf(reading) ?? fallback
    const never = new AbortController().signal
    try {
      const socket = await this.#connect(target, never)
      const fields = { from: 'agent', address, target: target.host } as const
      await this.#parts.carry(near, socketLeg(socket), fields)
    } catch (error) {
      near.close(error instanceof Error ? error : undefined)
      throw error
    }
  }

  #targetOf(reading: HelloReading): HostPort | undefined {
    if (reading.state !== 'hello' || reading.serverName === undefined) return undefined
    return this.#routes.find(reading.serverName)
  }

  #connect(target: HostPort, signal: AbortSignal) {
    const { dialTimeoutMs = defaultDialTimeoutMs } = this.#parts
    return connectTcp(target, { timeoutMs: dialTimeoutMs, signal })
  }
}
