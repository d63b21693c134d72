import { SendQueue } from '../../grpc/http2/index.ts'
import type { PacketTypeName } from '../protocol/index.ts'
import type { Carrier, PacketTally } from './link.ts'

/** A sender of payload that takes turns with others. */
export interface PayloadSource {
  /** Adds its next packets with at most `maxPayloadBytes`; returns whether it has more to send at once. */
  takeTurn(maxPayloadBytes: number, batch: PacketBatch): boolean
  /** Its packets have been written to the carrier. */
  turnEnded(): void
}

/** Packets for one write to the carrier. */
export class PacketBatch {
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

/** Bytes in the carrier above which packets wait here, where the order is still fair. */
const carrierHighWaterBytes = 256 * 1024
/** Memory of a control packet beyond its bytes. */
const packetOverheadBytes = 64
/** Payload of one source per turn. */
const maxTurnBytes = 64 * 1024

/** Decides what a link sends next: control packets first, then payload in turns. One write per event loop iteration. */
export class SendScheduler {
  readonly #carrier: Carrier
  readonly #tally: PacketTally | undefined
  readonly #onHeld: (change: number) => void
  /** In the order of their turns. */
  readonly #sources = new Set<PayloadSource>()
  readonly #control = new SendQueue()
  #controlTypes: PacketTypeName[] = []
  #isFlushDue = false
  #isClosed = false
  /** Memory of queued control packets. */
  controlBytes = 0
  /** Control packets here and bytes in the carrier, as reported last. */
  #heldBytes = 0

  /** `onHeld` is called with each change of the bytes that are held here and in the carrier. */
  constructor(carrier: Carrier, tally: PacketTally | undefined, onHeld: (change: number) => void) {
    this.#carrier = carrier
    this.#tally = tally
    this.#onHeld = onHeld
  }

  /** Sends a control packet. */
  send(type: PacketTypeName, bytes: Buffer): void {
    if (this.#isClosed) return
    this.#control.push(bytes)
    this.#controlTypes.push(type)
    this.controlBytes += bytes.length + packetOverheadBytes
    this.#flushSoon()
    this.#reportHeld()
  }

  /** Gives a source a turn. */
  schedule(source: PayloadSource): void {
    if (this.#isClosed) return
    this.#sources.add(source)
    this.#flushSoon()
  }

  unschedule(source: PayloadSource): void {
    this.#sources.delete(source)
  }

  #flushSoon(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    setImmediate(() => {
      this.#isFlushDue = false
      this.flush()
    })
  }

  /** Writes what the carrier has room for. */
  flush(): void {
    if (this.#isClosed) return
    this.#write(carrierHighWaterBytes - this.#carrier.backlog)
    this.#reportHeld()
  }

  /** Writes everything that may be sent, whatever the carrier holds, and accepts nothing more. */
  close(): void {
    if (this.#isClosed) return
    this.#write(Number.POSITIVE_INFINITY)
    this.#isClosed = true
    this.#sources.clear()
    this.#onHeld(-this.#heldBytes)
    this.#heldBytes = 0
  }

  #reportHeld(): void {
    if (this.#isClosed) return
    const change = this.controlBytes + this.#carrier.heldBytes - this.#heldBytes
    this.#heldBytes += change
    if (change !== 0) this.#onHeld(change)
  }

  #write(room: number): void {
    if (room <= 0 || (this.#control.bytes === 0 && this.#sources.size === 0)) return
    const batch = new PacketBatch(this.#tally)
    for (const type of this.#controlTypes) this.#tally?.sent(type)
    this.#controlTypes = []
    this.#control.take(this.#control.bytes, (part) => batch.add(part))
    this.controlBytes = 0
    const served = new Set<PayloadSource>()
    // A Set is iterated in insertion order; a source that is added again comes once more at the end.
    for (const source of this.#sources) {
      if (batch.bytes >= room) break
      this.#sources.delete(source)
      served.add(source)
      if (source.takeTurn(maxTurnBytes, batch)) this.#sources.add(source)
    }
    if (batch.parts.length > 0) this.#carrier.write(batch.parts)
    for (const source of served) source.turnEnded()
  }
}
