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
import { ChannelTables } from './channel-table.ts'
import { BackPressure } from './credit.ts'
import { DialFailed, IncomingDials, OutgoingDials } from './dials.ts'
import { ChannelBroken, LinkLost } from './errors.ts'
import {
  type Capability,
  type Carrier,
  type Channel,
  type Link,
  type LinkEnd,
  type LinkEvents,
  type PacketLinkOptions,
} from './link.ts'
import { SendScheduler } from './send-scheduler.ts'
import { detectStall, type StallDetector } from './stall-detector.ts'

type DialName = Pick<DialRequest, 'random' | 'dest'>

/** A link: dials, channels and their packets on a carrier. */
export class PacketLink implements Link, BudgetedLink {
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Readonly<Record<string, readonly string[]>>
  readonly ended: Promise<LinkEnd>
  readonly #options: PacketLinkOptions
  readonly #carrier: Carrier
  readonly #scheduler: SendScheduler
  readonly #channels: ChannelTables
  readonly #dials: OutgoingDials
  readonly #incoming: IncomingDials
  readonly #host: ChannelHost
  readonly #pressure: BackPressure
  readonly #stall: StallDetector | undefined
  readonly #decoder: PacketDecoder
  readonly #budget: BufferBudget
  #events: LinkEvents | undefined
  #lastConnectId = 0
  #queuedBytes = 0
  #undecodedBytes = 0
  heldBytes = 0
  #hasDialled = false
  #isDraining = false
  #isEnded = false
  #resolveEnded: (end: LinkEnd) => void = () => {}

  constructor(options: PacketLinkOptions) {
    this.#options = options
    this.capabilities = options.capabilities
    this.metadata = options.metadata
    this.#carrier = options.carrier
    this.#channels = new ChannelTables(options.side, options.capabilities.has('rdial'))
    this.#budget = options.budget ?? new BufferBudget(options.limits.peerBufferBytes)
    this.#budget.add(this)
    this.#scheduler = new SendScheduler(options.carrier, options.packets, (change) =>
      this.#hold(change),
    )
    this.#pressure = new BackPressure(
      options.carrier,
      () => this.channelCount === 1 && this.#dials.count === 0,
      options.limits.stoppedReaderMs,
    )
    this.#stall = detectStall(options, (stalled) => this.close(stalled))
    this.#host = this.#channelHost()
    this.#dials = new OutgoingDials({
      request: (random, address) => this.#requestDial(random, address),
      cancel: (random) =>
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
    return this.#channels.size
  }

  get pendingDialCount(): number {
    return this.#dials.count
  }

  get backlog(): number {
    return this.#queuedBytes + this.#scheduler.controlBytes + this.#carrier.backlog
  }

  start(events: LinkEvents): void {
    this.#events = events
    this.#carrier.start({
      data: (chunk) => this.#decode(chunk),
      progress: () => {
        this.#stall?.progressed()
        this.#scheduler.flush()
      },
      ended: (error) => this.#end(error),
    })
  }

  dial(
    address: string,
    options: { readonly signal: AbortSignal; readonly deadlineMs: number },
  ): Promise<Channel> {
    if (this.#isEnded) return Promise.reject(new DialFailed('link-lost', address))
    if (this.#channels.directions.outbound === undefined || this.#isUsedUp())
      return Promise.reject(
        new DialFailed('refused-by-peer', address, 'peer accepts no dials on this link'),
      )
    return this.#dials.dial(address, options.signal, options.deadlineMs)
  }

  sendDrain(): void {
    this.#send('DRAIN', { type: packetType.DRAIN, dest: destination.unset })
  }

  close(error?: Error): void {
    if (this.#isEnded) return
    if (error) this.#carrier.destroy(error)
    else {
      this.#scheduler.close()
      this.#carrier.end()
    }
    this.#end(error)
  }

  /** The stream of a front end is for one dial only. */
  #isUsedUp(): boolean {
    const isSingle = this.#options.side === 'gateway' || this.#options.side === 'front-end'
    if (isSingle && this.#hasDialled) return true
    this.#hasDialled = true
    return false
  }

  get #outboundDest(): number {
    return this.#channels.directions.outbound ?? destination.unset
  }

  #channelHost(): ChannelHost {
    const { capabilities, limits, carrier, clock } = this.#options
    const hasCredit = capabilities.has('credit')
    return {
      hasCredit,
      hasHalfClose: capabilities.has('halfclose'),
      maxUnreadBytes: hasCredit ? Number.POSITIVE_INFINITY : limits.channelUnreadBytes,
      pressureBytes: hasCredit ? Number.POSITIVE_INFINITY : limits.channelPressureBytes,
      closeTimeoutMs: limits.closeTimeoutMs,
      lastBytesMs: limits.lastBytesMs,
      window: {
        maxWindowBytes: limits.creditWindowBytes,
        get roundTripMs() {
          return carrier.roundTripMs
        },
        nowMs: () => clock.monotonic(),
      },
      send: (type, bytes) => this.#sendBytes(type, bytes),
      schedule: (source) => this.#scheduler.schedule(source),
      unschedule: (source) => this.#scheduler.unschedule(source),
      unread: (change) => this.#hold(change),
      queued: (change) => {
        this.#queuedBytes += change
        this.#hold(change)
      },
      setPressure: (channel, isOn) =>
        isOn ? this.#pressure.add(channel) : this.#pressure.remove(channel),
      remove: (channel) => {
        this.#channels.remove(channel)
        this.#endIfSingle()
      },
    }
  }

  #send(type: PacketTypeName, packet: ControlPacket): void {
    this.#sendBytes(type, encodePacket(packet))
  }

  #sendBytes(type: PacketTypeName, bytes: Buffer): void {
    this.#scheduler.send(type, bytes)
    if (this.#scheduler.controlBytes > this.#options.limits.controlBytes)
      this.close(new ProtocolError('peer sends requests and does not read the responses'))
  }

  #hold(change: number): void {
    this.heldBytes += change
    this.#budget.count(change)
  }

  shed(): void {
    const { fullest, heldBytes } = this.#channels.load()
    if (fullest && heldBytes >= this.heldBytes / 2) fullest.overflow()
    else this.close(new ProtocolError('peer makes us hold too many bytes'))
  }

  /** The stream of a front end ends after its only dial. */
  #endIfSingle(): void {
    if (this.#options.side === 'gateway') setImmediate(() => this.close())
  }

  #requestDial(random: bigint, address: string): void {
    const dest = this.#outboundDest
    this.#send('DIAL_REQ', { type: packetType.DIAL_REQ, protocol: 'tcp', address, random, dest })
  }

  #open(address: string, connectId: number): Channel {
    const name = { connectId, dest: this.#outboundDest, address, isDialledByUs: true }
    if (connectId === 0 || this.#channels.outbound.get(connectId))
      throw new ProtocolError('response to a dial has a connection id that is in use')
    const channel = new LinkChannel(this.#host, name)
    this.#channels.outbound.add(channel)
    return channel
  }

  #accept({ address, random, dest }: DialRequest): Channel {
    const connectId = ++this.#lastConnectId
    const channel = new LinkChannel(this.#host, {
      connectId,
      dest: this.#channels.directions.inbound ?? dest,
      address,
      isDialledByUs: false,
    })
    this.#channels.inbound.add(channel)
    this.#send('DIAL_RSP', { type: packetType.DIAL_RSP, error: '', connectId, random, dest })
    return channel
  }

  #refuse({ random, dest }: DialName, error: string): void {
    this.#send('DIAL_RSP', { type: packetType.DIAL_RSP, error, connectId: 0, random, dest })
  }

  #decode(chunk: Buffer): void {
    if (this.#isEnded) return
    try {
      this.#decoder.push(chunk)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.close(error)
    }
    if (!this.#isEnded) this.#holdUndecoded(this.#decoder.heldBytes)
  }

  #holdUndecoded(bytes: number): void {
    const change = bytes - this.#undecodedBytes
    this.#undecodedBytes = bytes
    if (change !== 0) this.#hold(change)
  }

  #received(packet: ControlPacket): void {
    if (this.#isEnded) return
    switch (packet.type) {
      case packetType.DIAL_REQ:
        this.#receivedDial(packet)
        return
      case packetType.DIAL_RSP:
        this.#receivedDialResponse(packet)
        return
      case packetType.DIAL_CLS:
        if (this.#channels.isInbound(packet.dest)) this.#receivedCancel(packet)
        else this.#dials.closedByPeer(packet.random)
        return
      case packetType.DRAIN:
        this.#receivedDrain()
        return
      case packetType.CLOSE_REQ:
      case packetType.CLOSE_RSP:
      case packetType.CREDIT:
      case packetType.FIN:
        this.#receivedForChannel(packet)
    }
  }

  /** Reported once: each event is a log line. */
  #receivedDrain(): void {
    if (!this.#isDraining) this.#events?.drain()
    this.#isDraining = true
  }

  #receivedForChannel(packet: CloseRequest | CloseResponse | Credit | Fin): void {
    const { connectId, dest } = packet
    const channel = this.#channels.of(dest).get(connectId)
    if (packet.type === packetType.CLOSE_REQ) {
      if (channel) channel.receiveCloseRequest()
      else this.#sendCloseResponse({ connectId, dest, error: 'Unknown connectID' })
    } else if (packet.type === packetType.CLOSE_RSP) channel?.receiveCloseResponse(packet.error)
    else if (packet.type === packetType.CREDIT) channel?.receiveCredit(packet.bytes)
    else channel?.receiveFin()
  }

  #receivedDial(packet: DialRequest): void {
    const refusal = this.#refusalOf(packet)
    const dial = refusal === undefined ? this.#incoming.add(packet) : undefined
    if (dial) this.#events?.dial(dial)
    else this.#refuse(packet, refusal ?? 'a dial with this random number is pending')
  }

  #refusalOf({ dest }: DialRequest): string | undefined {
    if (!this.#channels.isInbound(dest)) return 'dials in this direction are not supported'
    if (this.#isUsedUp()) return 'this stream is for one dial only'
    const isFull = this.#incoming.count >= this.#options.limits.pendingIncomingDials
    return isFull ? 'too many pending dials' : undefined
  }

  #receivedCancel(packet: DialName): void {
    const wasPending = this.#incoming.cancel(packet.random)
    // Konnectivity's server removes a dial only when there is a response.
    if (wasPending && this.#options.side === 'agent' && this.capabilities.size === 0)
      this.#refuse(packet, 'dial was cancelled')
  }

  #receivedDialResponse(packet: DialResponse): void {
    if (this.#dials.responded(packet) || packet.error !== '') return
    // We have cancelled the dial, and the peer did not know yet.
    const { connectId, dest } = packet
    this.#send('CLOSE_REQ', { type: packetType.CLOSE_REQ, connectId, dest })
  }

  #sendCloseResponse(packet: Omit<CloseResponse, 'type'>): void {
    this.#send('CLOSE_RSP', { type: packetType.CLOSE_RSP, ...packet })
  }

  #receivedData(connectId: number, dest: number, chunk: Buffer): void {
    if (this.#isEnded) return
    const table = this.#channels.of(dest)
    const channel = table.get(connectId)
    if (channel) channel.receive(chunk)
    else if (connectId === 0)
      this.#options.log.debug({ bytes: chunk.length }, 'data without a connection id dropped')
    else if (!table.isClosed(connectId)) this.#receivedStrayData(connectId, dest)
  }

  #receivedStrayData(connectId: number, dest: number): void {
    if (!this.#channels.isInbound(dest)) {
      this.#send('CLOSE_REQ', { type: packetType.CLOSE_REQ, connectId, dest })
      return
    }
    if (this.#options.side !== 'gateway') {
      this.#sendCloseResponse({ connectId, dest, error: 'unrecognized connectID' })
      return
    }
    const [channel] = this.#channels.inbound.values()
    const error = channel ? 'mismatched connection IDs' : 'backend not initialized'
    this.#sendCloseResponse({ connectId, dest, error })
    channel?.close(new ChannelBroken(error))
  }

  #end(error?: Error): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#dials.failAll()
    this.#incoming.cancelAll()
    const lost = new LinkLost(error)
    for (const channel of this.#channels.all()) channel.closed(lost)
    this.#pressure.stop()
    this.#stall?.stop()
    this.#scheduler.close()
    this.#holdUndecoded(0)
    this.#budget.remove(this)
    this.#resolveEnded(error ? { error } : {})
  }
}
