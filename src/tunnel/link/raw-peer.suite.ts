import { silentLogger, systemClock } from '../../core/index.ts'
import {
  type ControlPacket,
  encodeDataHead,
  encodePacket,
  PacketDecoder,
  packetType,
} from '../protocol/index.ts'
import {
  type BufferBudget,
  type Capability,
  type Carrier,
  type CarrierEvents,
  defaultLinkLimits,
  type IncomingDial,
  type LinkLimits,
  type LinkSide,
  PacketLink,
} from './index.ts'

/** What a link sent: a packet, or how many bytes on which connection. */
export type Sent =
  | ControlPacket
  | {
      readonly type: 4
      readonly connectId: number
      readonly dest: number
      text: string
      bytes: number
    }

/** A link of ours, and a test in the place of the other end that speaks in single packets. */
export class RawPeer implements Carrier {
  readonly link: PacketLink
  readonly sent: Sent[] = []
  readonly dials: IncomingDial[] = []
  drains = 0
  readonly roundTripMs = 1
  readonly #decoder: PacketDecoder
  /** Bytes that the carrier pretends to hold back. */
  backlog = 0
  /** Keeps all that is written, as a carrier does whose other end takes nothing. */
  isStuck = false
  heldBytes = 0
  isEnded = false
  destroyedBy: Error | undefined
  writes = 0
  isThrottled = false
  allowedBytes = 0
  events: CarrierEvents | undefined

  constructor(
    side: LinkSide,
    capabilities: readonly Capability[] = [],
    limits: Partial<LinkLimits> = {},
    budget?: BufferBudget,
  ) {
    this.#decoder = new PacketDecoder({
      seen: (type) => {
        if (type === 'DATA') this.sent.push({ type: 4, connectId: -1, dest: 0, text: '', bytes: 0 })
      },
      packet: (packet) => this.sent.push(packet),
      data: (connectId, dest, chunk) => {
        const last = this.sent.pop()
        if (last?.type !== packetType.DATA) throw new Error('data outside of a packet')
        const text = last.text + (chunk.length < 1_000 ? chunk.toString() : '')
        this.sent.push({ type: 4, connectId, dest, text, bytes: last.bytes + chunk.length })
      },
      unknown: () => {},
    })
    this.link = new PacketLink({
      carrier: this,
      side,
      capabilities: new Set(capabilities),
      metadata: {},
      limits: { ...defaultLinkLimits, ...limits },
      budget,
      clock: systemClock,
      log: silentLogger,
    })
    this.link.start({
      dial: (dial) => this.dials.push(dial),
      drain: () => {
        this.drains++
      },
    })
  }

  start(events: CarrierEvents): void {
    this.events = events
  }

  write(parts: readonly Buffer[]): void {
    this.writes++
    for (const part of parts) {
      this.#decoder.push(part)
      if (this.isStuck) this.heldBytes += part.length
    }
  }

  end(): void {
    this.isEnded = true
  }

  destroy(error?: Error): void {
    this.destroyedBy = error
  }

  throttle(isOn: boolean): void {
    this.isThrottled = isOn
  }

  allow(bytes: number): void {
    this.allowedBytes += bytes
  }

  say(packet: ControlPacket): void {
    this.events?.data(encodePacket(packet))
  }

  sayData(connectId: number, data: Buffer | string, dest = 0): void {
    const payload = Buffer.from(data)
    this.events?.data(Buffer.concat([encodeDataHead(connectId, dest, payload.length), payload]))
  }

  /** The other end dials us. */
  dial(random = 1n, dest = 0): IncomingDial {
    this.say({ type: packetType.DIAL_REQ, protocol: 'tcp', address: 'x:1', random, dest })
    const dial = this.dials.at(-1)
    if (!dial) throw new Error('no dial came')
    return dial
  }

  /** We dial the other end, which answers with this id. */
  async dialled(connectId: number, dest = 0) {
    const dialling = this.link.dial('x:1', {
      signal: new AbortController().signal,
      deadlineMs: 10_000,
    })
    await this.quiet()
    const request = this.sent.findLast((packet) => packet.type === packetType.DIAL_REQ)
    if (request?.type !== packetType.DIAL_REQ) throw new Error('no dial was sent')
    this.say({ type: packetType.DIAL_RSP, random: request.random, error: '', connectId, dest })
    return dialling
  }

  /** Resolves when what is ready to be sent has been. */
  async quiet(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}
