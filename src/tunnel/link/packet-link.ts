import type { Clock, Logger } from '../../core/index.ts'
import {
  type CloseRequest,
  type CloseResponse,
  type ControlPacket,
  type Credit,
  type DialRequest,
  type DialResponse,
  destination,
  encodePacket,
  type Fin,
  PacketDecoder,
  type PacketTypeName,
  ProtocolError,
  packetType,
} from '../protocol/index.ts'
import { type BudgetedLink, BufferBudget } from './buffer-budget.ts'
import { type ChannelHost, LinkChannel } from './channel.ts'
import { ChannelTable } from './channel-table.ts'
import { Pressure } from './credit.ts'
import { DialFailed, IncomingDials, OutgoingDials } from './dials.ts'
import { ChannelBroken, LinkLost } from './errors.ts'
import type { LinkLimits } from './limits.ts'
import {
  type Capability,
  type Carrier,
  type Channel,
  type Directions,
  directionsOf,
  type Link,
  type LinkEnd,
  type LinkEvents,
  type LinkSide,
  type PacketTally,
} from './link.ts'
import { Outbox } from './outbox.ts'
import { type StallWatch, watchForStall } from './stall-detector.ts'

/** What a link is made of. */
export interface PacketLinkOptions {
  readonly carrier: Carrier
  readonly side: LinkSide
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Readonly<Record<string, readonly string[]>>
  readonly limits: LinkLimits
  readonly clock: Clock
  readonly log: Logger
  readonly packets?: PacketTally | undefined
  /** Shared with the other links of the peer; one of its own without it. */
  readonly budget?: BufferBudget | undefined
}

type DialName = Pick<DialRequest, 'random' | 'dest'>

/** The state machine of one link: dials, channels and their packets over a carrier. */
export class PacketLink implements Link, BudgetedLink {
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Readonly<Record<string, readonly string[]>>
  readonly ended: Promise<LinkEnd>
  readonly #options: PacketLinkOptions
  readonly #carrier: Carrier
  readonly #outbox: Outbox
  readonly #directions: Directions
  readonly #outbound = new ChannelTable()
  readonly #inbound = new ChannelTable()
  readonly #dials: OutgoingDials
  readonly #incoming: IncomingDials
  readonly #host: ChannelHost
  readonly #pressure: Pressure
  readonly #stall: StallWatch | undefined
  readonly #decoder: PacketDecoder
  readonly #budget: BufferBudget
  #events: LinkEvents | undefined
  #lastConnectId = 0
  #queuedBytes = 0
  #undecodedBytes = 0
  heldBytes = 0
  #hasDialled = false
  #isDraining = false
  #isOver = false
  #resolveEnded: (end: LinkEnd) => void = () => {}

  constructor(options: PacketLinkOptions) {
    this.#options = options
    this.capabilities = options.capabilities
    this.metadata = options.metadata
    this.#carrier = options.carrier
    this.#directions = directionsOf(options.side, options.capabilities.has('rdial'))
    this.#budget = options.budget ?? new BufferBudget(options.limits.peerBufferBytes)
    this.#budget.add(this)
    this.#outbox = new Outbox(options.carrier, options.packets, (change) => this.#hold(change))
    this.#pressure = new Pressure(
      options.carrier,
      () => this.channelCount === 1 && this.#dials.count === 0,
      options.limits.stoppedReaderMs,
    )
    this.#stall = watchForStall(options, (stalled) => this.close(stalled))
    this.#host = this.#channelHost()
    this.#dials = new OutgoingDials({
      request: (random, address) => this.#requestDial(random, address),
      takeBack: (random) =>
        this.#send('DIAL_CLS', { type: packetType.DIAL_CLS, random, dest: this.#outboundDest }),
      open: (address, connectId) => this.#open(address, connectId),
    })
    this.#incoming = new IncomingDials({
      accept: (dial) => this.#accept(dial),
      refuse: (dial, text) => {
        this.#refuse(dial, text)
        this.#endIfSingle()
      },
    })
    this.#decoder = new PacketDecoder({
      seen: (type) => options.packets?.received(type),
      packet: (packet) => this.#received(packet),
      data: (connectId, dest, chunk) => this.#receivedData(connectId, dest, chunk),
      unknown: (wireType) => options.log.debug({ wireType }, 'packet of an unknown type ignored'),
    })
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve
    })
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  get channelCount(): number {
    return this.#outbound.size + this.#inbound.size
  }

  get pendingDialCount(): number {
    return this.#dials.count
  }

  get backlog(): number {
    return this.#queuedBytes + this.#outbox.controlBytes + this.#carrier.backlog
  }

  start(events: LinkEvents): void {
    this.#events = events
    this.#carrier.start({
      data: (chunk) => this.#decode(chunk),
      progress: () => {
        this.#stall?.progressed()
        this.#outbox.flush()
      },
      ended: (error) => this.#over(error),
    })
  }

  dial(
    address: string,
    options: { readonly signal: AbortSignal; readonly deadlineMs: number },
  ): Promise<Channel> {
    if (this.#isOver) return Promise.reject(new DialFailed('link-lost', address))
    if (this.#directions.outbound === undefined || this.#isUsedUp())
      return Promise.reject(
        new DialFailed('refused-by-peer', address, 'the other end takes no dials on this link'),
      )
    return this.#dials.dial(address, options.signal, options.deadlineMs)
  }

  sendDrain(): void {
    this.#send('DRAIN', { type: packetType.DRAIN, dest: destination.unset })
  }

  close(error?: Error): void {
    if (this.#isOver) return
    if (error) this.#carrier.destroy(error)
    else {
      this.#outbox.close()
      this.#carrier.end()
    }
    this.#over(error)
  }

  /** A front end's stream is for one dial only. */
  #isUsedUp(): boolean {
    const isSingle = this.#options.side === 'gateway' || this.#options.side === 'front-end'
    if (isSingle && this.#hasDialled) return true
    this.#hasDialled = true
    return false
  }

  get #outboundDest(): number {
    return this.#directions.outbound ?? destination.unset
  }

  #channelHost(): ChannelHost {
    const { capabilities, limits, carrier, clock } = this.#options
    const hasCredit = capabilities.has('credit')
    return {
      hasCredit,
      hasHalfClose: capabilities.has('halfclose'),
      maxUnreadBytes: hasCredit ? Number.POSITIVE_INFINITY : limits.channelUnreadBytes,
      pressureBytes: hasCredit ? Number.POSITIVE_INFINITY : limits.channelPressureBytes,
      closeAnswerMs: limits.closeAnswerMs,
      lastBytesMs: limits.lastBytesMs,
      window: {
        maxWindowBytes: limits.creditWindowBytes,
        get roundTripMs() {
          return carrier.roundTripMs
        },
        nowMs: () => clock.monotonic(),
      },
      send: (type, bytes) => this.#sendBytes(type, bytes),
      enter: (source) => this.#outbox.enter(source),
      leave: (source) => this.#outbox.leave(source),
      unread: (change) => this.#hold(change),
      queued: (change) => {
        this.#queuedBytes += change
        this.#hold(change)
      },
      press: (channel, isPressing) =>
        isPressing ? this.#pressure.raise(channel) : this.#pressure.lower(channel),
      forget: (channel) => this.#forget(channel),
    }
  }

  #send(type: PacketTypeName, packet: ControlPacket): void {
    this.#sendBytes(type, encodePacket(packet))
  }

  #sendBytes(type: PacketTypeName, bytes: Buffer): void {
    this.#outbox.send(type, bytes)
    if (this.#outbox.controlBytes > this.#options.limits.controlBytes)
      this.close(new ProtocolError('it sends requests and does not read the answers'))
  }

  #hold(change: number): void {
    this.heldBytes += change
    this.#budget.count(change)
  }

  shed(): void {
    let fullest: LinkChannel | undefined
    let ownBytes = this.heldBytes
    for (const channel of [...this.#inbound.values(), ...this.#outbound.values()]) {
      ownBytes -= channel.heldBytes
      if (fullest === undefined || channel.heldBytes > fullest.heldBytes) fullest = channel
    }
    if (fullest && ownBytes <= this.heldBytes / 2) fullest.overflow()
    else this.close(new ProtocolError('it makes this end keep too many bytes'))
  }

  #forget(channel: LinkChannel): void {
    const table = channel.isDialledByUs ? this.#outbound : this.#inbound
    table.remove(channel)
    this.#endIfSingle()
  }

  /** A front end's stream has nothing left to do after its only dial. */
  #endIfSingle(): void {
    if (this.#options.side === 'gateway') setImmediate(() => this.close())
  }

  #requestDial(random: bigint, address: string): void {
    const dest = this.#outboundDest
    this.#send('DIAL_REQ', { type: packetType.DIAL_REQ, protocol: 'tcp', address, random, dest })
  }

  #open(address: string, connectId: number): Channel {
    const name = { connectId, dest: this.#outboundDest, address, isDialledByUs: true }
    if (connectId === 0 || this.#outbound.get(connectId))
      throw new ProtocolError('a dial was answered with a connection id that is in use')
    const channel = new LinkChannel(this.#host, name)
    this.#outbound.add(channel)
    return channel
  }

  #accept({ address, random, dest }: DialRequest): Channel {
    const connectId = ++this.#lastConnectId
    const channel = new LinkChannel(this.#host, {
      connectId,
      dest: this.#directions.inbound ?? dest,
      address,
      isDialledByUs: false,
    })
    this.#inbound.add(channel)
    this.#send('DIAL_RSP', { type: packetType.DIAL_RSP, error: '', connectId, random, dest })
    return channel
  }

  #refuse({ random, dest }: DialName, error: string): void {
    this.#send('DIAL_RSP', { type: packetType.DIAL_RSP, error, connectId: 0, random, dest })
  }

  #decode(chunk: Buffer): void {
    if (this.#isOver) return
    try {
      this.#decoder.push(chunk)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.close(error)
    }
    if (!this.#isOver) this.#holdUndecoded(this.#decoder.heldBytes)
  }

  #holdUndecoded(bytes: number): void {
    const change = bytes - this.#undecodedBytes
    this.#undecodedBytes = bytes
    if (change !== 0) this.#hold(change)
  }

  #received(packet: ControlPacket): void {
    if (this.#isOver) return
    switch (packet.type) {
      case packetType.DIAL_REQ:
        this.#receivedDial(packet)
        return
      case packetType.DIAL_RSP:
        this.#receivedAnswer(packet)
        return
      case packetType.DIAL_CLS:
        if (this.#isInbound(packet.dest)) this.#receivedTakeBack(packet)
        else this.#dials.closedByPeer(packet.random)
        return
      case packetType.DRAIN:
        this.#receivedDrain()
        return
      case packetType.CLOSE_REQ:
      case packetType.CLOSE_RSP:
      case packetType.CREDIT:
      case packetType.FIN:
        this.#receivedOfChannel(packet)
    }
  }

  /** Reported once: each report is a log line. */
  #receivedDrain(): void {
    if (!this.#isDraining) this.#events?.drain()
    this.#isDraining = true
  }

  #receivedOfChannel(packet: CloseRequest | CloseResponse | Credit | Fin): void {
    const { connectId, dest } = packet
    const channel = this.#tableOf(dest).get(connectId)
    if (packet.type === packetType.CLOSE_REQ) {
      if (channel) channel.receiveCloseRequest()
      else this.#sendCloseResponse({ connectId, dest, error: 'Unknown connectID' })
    } else if (packet.type === packetType.CLOSE_RSP) channel?.receiveCloseResponse(packet.error)
    else if (packet.type === packetType.CREDIT) channel?.receiveCredit(packet.bytes)
    else channel?.receiveFin()
  }

  /** Ends that have not agreed on reverse dials use one direction only, whatever `dest` says. */
  #directed(dest: number): number {
    const isReverse = this.capabilities.has('rdial') && dest === destination.controlPlane
    return isReverse ? destination.controlPlane : destination.unset
  }

  #isInbound(dest: number): boolean {
    return this.#directed(dest) === this.#directions.inbound
  }

  #tableOf(dest: number): ChannelTable {
    return this.#isInbound(dest) ? this.#inbound : this.#outbound
  }

  #receivedDial(packet: DialRequest): void {
    if (!this.#isInbound(packet.dest)) {
      this.#refuse(packet, 'dials in this direction were not agreed on')
      return
    }
    if (this.#isUsedUp()) {
      this.#refuse(packet, 'this stream has been used for a dial already')
      return
    }
    if (this.#incoming.count >= this.#options.limits.pendingIncomingDials) {
      this.#refuse(packet, 'too many dials are waiting')
      return
    }
    const dial = this.#incoming.add(packet)
    if (dial) this.#events?.dial(dial)
    else this.#refuse(packet, 'a dial of this name is waiting already')
  }

  #receivedTakeBack(packet: DialName): void {
    const wasWaiting = this.#incoming.takenBack(packet.random)
    // Upstream's server forgets a dial when it is answered, and only then.
    if (wasWaiting && this.#options.side === 'agent' && this.capabilities.size === 0)
      this.#refuse(packet, 'the dial was taken back')
  }

  #receivedAnswer(packet: DialResponse): void {
    if (this.#dials.answered(packet) || packet.error !== '') return
    // We gave up, and the other end did not know yet.
    const { connectId, dest } = packet
    this.#send('CLOSE_REQ', { type: packetType.CLOSE_REQ, connectId, dest })
  }

  #sendCloseResponse(packet: Omit<CloseResponse, 'type'>): void {
    this.#send('CLOSE_RSP', { type: packetType.CLOSE_RSP, ...packet })
  }

  #receivedData(connectId: number, dest: number, chunk: Buffer): void {
    if (this.#isOver) return
    const table = this.#tableOf(dest)
    const channel = table.get(connectId)
    if (channel) channel.receive(chunk)
    else if (connectId === 0)
      this.#options.log.debug({ bytes: chunk.length }, 'data without a connection id dropped')
    else if (!table.isClosed(connectId)) this.#receivedStrayData(connectId, dest)
  }

  #receivedStrayData(connectId: number, dest: number): void {
    if (!this.#isInbound(dest)) {
      this.#send('CLOSE_REQ', { type: packetType.CLOSE_REQ, connectId, dest })
      return
    }
    if (this.#options.side !== 'gateway') {
      this.#sendCloseResponse({ connectId, dest, error: 'unrecognized connectID' })
      return
    }
    const [channel] = this.#inbound.values()
    const error = channel ? 'mismatched connection IDs' : 'backend not initialized'
    this.#sendCloseResponse({ connectId, dest, error })
    channel?.close(new ChannelBroken(error))
  }

  #over(error?: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#dials.failAll()
    this.#incoming.giveUpAll()
    const lost = new LinkLost(error)
    for (const channel of [...this.#inbound.values(), ...this.#outbound.values()])
      channel.over(lost)
    this.#pressure.stop()
    this.#stall?.stop()
    this.#outbox.close()
    this.#holdUndecoded(0)
    this.#budget.remove(this)
    this.#resolveEnded(error ? { error } : {})
  }
}
