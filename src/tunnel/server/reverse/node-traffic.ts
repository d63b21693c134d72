import type { Socket } from 'node:net'
import { type Clock, excerpt, type Logger, quotePeer } from '../../../core/index.ts'
import type { HostPort } from '../../addresses.ts'
import { type ByteStream, type IncomingDial, socketStream } from '../../link/index.ts'
import { FairLimit } from '../../ports/fair-limit.ts'
import { SparseLog } from '../../sampled-log.ts'
import type { AgentSession } from '../agent-session.ts'
import type { CarriedFields } from '../hub.ts'
import type { SniRoute } from '../options/index.ts'
import { AllowList, SniRoutes } from './allow-list.ts'
import { type HelloReading, readClientHello } from './client-hello.ts'
import { connectTcp, TargetUnreachable } from './connect-tcp.ts'
import { PeekStream } from './peek-stream.ts'

/** What answers the dials of agents. */
export interface NodeTrafficParts {
  /** Off means that every dial is refused. */
  readonly isOn: boolean
  readonly allowedDestinations: readonly string[]
  readonly sniRoutes: readonly SniRoute[]
  /** At a time; beyond, the agent with most of them gives way. */
  readonly maxConnections?: number
  /** Joins both sides and counts the connection. */
  readonly carry: (near: ByteStream, far: ByteStream, fields: CarriedFields) => Promise<void>
  readonly clock: Clock
  readonly log: Logger
  readonly dialTimeoutMs?: number
}

const defaultDialTimeoutMs = 5_000
const defaultMaxConnections = 10_000
const helloLimits = { maxBytes: 32 * 1024, timeoutMs: 10_000 }

/** Traffic from nodes to the control plane: answers what agents dial, if the place is on the list. */
export class NodeTraffic {
  readonly #parts: NodeTrafficParts
  readonly #allowed: AllowList
  readonly #routes: SniRoutes
  readonly #places: FairLimit
  readonly #sparseLog: SparseLog

  constructor(parts: NodeTrafficParts) {
    this.#parts = parts
    this.#places = new FairLimit(parts.maxConnections ?? defaultMaxConnections)
    this.#sparseLog = new SparseLog(parts.log, parts.clock)
    this.#allowed = new AllowList(parts.allowedDestinations)
    this.#routes = new SniRoutes(parts.sniRoutes)
  }

  /** Answers a dial of an agent. */
  handle(
    dial: IncomingDial,
    { agentId, peer, identity }: Pick<AgentSession, 'agentId' | 'peer' | 'identity'>,
  ): void {
    const fields = { agentId, ...identity.fields, address: excerpt(dial.address) }
    const refuse = (why: string): void => {
      this.#sparseLog.warn(`refused ${peer}`, { ...fields, why }, 'dial of an agent refused')
      dial.refuse(why)
    }
    const allowed = this.#allowedTarget(dial)
    if ('refusal' in allowed) return refuse(allowed.refusal)
    const cut = new AbortController()
    const leave = this.#places.enter(peer, () => cut.abort())
    if (!leave) return refuse('too many connections of nodes are open')
    const served = this.#routes.isEmpty
      ? this.#connectFirst(dial, allowed, cut.signal)
      : this.#acceptFirst(dial, allowed, cut.signal)
    served
      .catch((error: unknown) => {
        const { log } = this.#parts
        if (!(error instanceof TargetUnreachable))
          log.error({ ...fields, err: error }, 'dial of an agent failed')
        else
          this.#sparseLog.warn(
            `failed ${peer}`,
            { ...fields, why: error.message },
            'dial of an agent failed',
          )
      })
      .finally(leave)
  }

  #allowedTarget({ protocol, address }: IncomingDial): HostPort | { readonly refusal: string } {
    if (!this.#parts.isOn) {
      return { refusal: 'traffic from nodes to the control plane is switched off on this server' }
    }
    if (protocol !== 'tcp') return { refusal: `unsupported protocol ${quotePeer(protocol)}` }
    const target = this.#allowed.find(address)
    return target ?? { refusal: `destination ${quotePeer(address)} is not allowed` }
  }

  async #connectFirst(dial: IncomingDial, target: HostPort, cut: AbortSignal): Promise<void> {
    const { address } = dial
    const signal = AbortSignal.any([dial.signal, cut])
    let socket: Awaited<ReturnType<typeof connectTcp>>
    try {
      socket = await this.#connect(target, signal)
    } catch (error) {
      const text = error instanceof TargetUnreachable ? error.message : 'internal error'
      dial.refuse(`dial tcp ${address}: ${text}`)
      throw error
    }
    const near = dial.accept()
    if (near) await this.#carry(near, socket, { from: 'agent', address }, cut)
    else socket.destroy()
  }

  /** With routes, the client has to speak before its target is known. */
  async #acceptFirst(dial: IncomingDial, fallback: HostPort, cut: AbortSignal): Promise<void> {
    const { address } = dial
    const channel = dial.accept()
    if (!channel) return
    const near = new PeekStream(channel)
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
    try {
      const socket = await this.#connect(target, cut)
      await this.#carry(near, socket, { from: 'agent', address, target: target.host }, cut)
    } catch (error) {
      near.close(error instanceof Error ? error : undefined)
      throw error
    }
  }

  #targetOf(reading: HelloReading): HostPort | undefined {
    if (reading.state !== 'hello' || reading.serverName === undefined) return undefined
    return this.#routes.find(reading.serverName)
  }

  #carry(near: ByteStream, socket: Socket, fields: CarriedFields, cut: AbortSignal): Promise<void> {
    const giveWay = (): void => near.close(new TargetUnreachable('gave way to other agents'))
    cut.addEventListener('abort', giveWay, { once: true })
    return this.#parts.carry(near, socketStream(socket), fields)
  }

  #connect(target: HostPort, signal: AbortSignal) {
    const { dialTimeoutMs = defaultDialTimeoutMs } = this.#parts
    return connectTcp(target, { timeoutMs: dialTimeoutMs, signal })
  }
}
