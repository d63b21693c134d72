import { SendQueue } from '../../grpc/http2/index.ts'
import type { PacketTypeName } from '../protocol/index.ts'
import type { Carrier, PacketTally } from './link.ts'

/** Somebody who has payload to send and takes turns with the others. */
export interface PayloadSource {
  /** Adds its next packets, with at most so many payload bytes, and tells whether it could go on at once. */
  takeTurn(maxPayloadBytes: number, outgoing: Outgoing): boolean
  /** What it added has been handed to the carrier. */
  turnIsOver(): void
}

/** Packets on their way to the carrier. */
export class Outgoing {
  readonly parts: Buffer[] = []
  readonly #tally: PacketTally | undefined
  bytes = 0

  constructor(tally: PacketTally | undefined) {
    this.#tally = tally
  }

  add(part: Buffer): void {
    this.parts.push(part)
    this.bytes += part.length
  }

  addPacket(type: PacketTypeName, bytes: Buffer): void {
    this.#tally?.sent(type)
    this.add(bytes)
  }
}

/** Bytes in the carrier above which packets wait here, where they can still be put into a fair order. */
const carrierHighWaterBytes = 256 * 1024
/** What a small packet costs beyond its bytes. */
const packetOverheadBytes = 64
/** The payload that one source may send before the next one has its turn. */
const turnBytes = 64 * 1024

/**
 * Decides what goes out next: small packets first, then payload in turns.
 * Everything that is ready within one turn of the event loop leaves in one write.
 */
export class Outbox {
  readonly #carrier: Carrier
  readonly #tally: PacketTally | undefined
  readonly #held: (change: number) => void
  /** In the order of their turns. */
  readonly #sources = new Set<PayloadSource>()
  readonly #control = new SendQueue()
  #controlTypes: PacketTypeName[] = []
  #isScheduled = false
  #isClosed = false
  /** Small packets that wait, with what they cost beyond their bytes. */
  controlBytes = 0
  /** Small packets here and bytes in the carrier, as reported last. */
  #heldBytes = 0

  /** `held` hears how many bytes are kept more, or fewer, here and in the carrier. */
  constructor(carrier: Carrier, tally: PacketTally | undefined, held: (change: number) => void) {
    this.#carrier = carrier
    this.#tally = tally
    this.#held = held
  }

  /** Sends a packet that need not wait for payload. */
  send(type: PacketTypeName, bytes: Buffer): void {
    if (this.#isClosed) return
    this.#control.push(bytes)
    this.#controlTypes.push(type)
    this.controlBytes += bytes.length + packetOverheadBytes
    this.#schedule()
    this.#report()
  }

  /** Gives a source its turn, now that it has something to send. */
  enter(source: PayloadSource): void {
    if (this.#isClosed) return
    this.#sources.add(source)
    this.#schedule()
  }

  leave(source: PayloadSource): void {
    this.#sources.delete(source)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.flush()
    })
  }

  /** Hands over what the carrier has room for. */
  flush(): void {
    if (this.#isClosed) return
    this.#handOver(carrierHighWaterBytes - this.#carrier.backlog)
    this.#report()
  }

  /** Hands over everything that can go, whatever the carrier holds already, and takes nothing more. */
  close(): void {
    if (this.#isClosed) return
    this.#handOver(Number.POSITIVE_INFINITY)
    this.#isClosed = true
    this.#sources.clear()
    this.#held(-this.#heldBytes)
    this.#heldBytes = 0
  }

  #report(): void {
    if (this.#isClosed) return
    const change = this.controlBytes + this.#carrier.heldBytes - this.#heldBytes
    this.#heldBytes += change
    if (change !== 0) this.#held(change)
  }

  #handOver(room: number): void {
    if (room <= 0 || (this.#control.bytes === 0 && this.#sources.size === 0)) return
    const outgoing = new Outgoing(this.#tally)
    for (const type of this.#controlTypes) this.#tally?.sent(type)
    this.#controlTypes = []
    this.#control.take(this.#control.bytes, (part) => outgoing.add(part))
    this.controlBytes = 0
    const served = new Set<PayloadSource>()
    // A Set is walked in the order of entry, and what is entered again comes once more at the end.
    for (const source of this.#sources) {
      if (outgoing.bytes >= room) break
      this.#sources.delete(source)
      served.add(source)
      if (source.takeTurn(turnBytes, outgoing)) this.#sources.add(source)
    }
    if (outgoing.parts.length > 0) this.#carrier.write(outgoing.parts)
    for (const source of served) source.turnIsOver()
  }
}
