import { randomBytes } from 'node:crypto'
import {
  bitsOf,
  type Cidr,
  cidrProblems,
  formatCidr,
  formatIp,
  parseCidr,
  parseIp,
} from '../../validation/ip.ts'

/** Hands out the addresses of one range, each once. */
export interface IpAllocator {
  readonly cidr: string
  readonly family: 'IPv4' | 'IPv6'
  /** Any free address; `undefined` when there is none left. */
  allocate(): string | undefined
  /** Reserves this very address. */
  take(ip: string): 'ok' | 'taken' | 'out-of-range'
  /** Gives an address back; one that is not taken does no harm. */
  release(ip: string): void
  /** True for the first address, which is kept for Service default/kubernetes, taken yet or not. */
  isKept(ip: string): boolean
  /** True for every address that the range could hand out. */
  contains(ip: string): boolean
}

/** A number from 0 up to, but not including, `below`. */
export type RandomBelow = (below: bigint) => bigint

// Sixteen bytes more than needed make the bias of the remainder immeasurable.
const cryptoRandom: RandomBelow = (below) => BigInt(`0x${randomBytes(32).toString('hex')}`) % below

/** Kubernetes leaves the low end of the range to those who ask for an address by name. */
function lowBandOf(size: bigint): bigint {
  if (size < 16n) return 0n
  const sixteenth = size / 16n
  return sixteenth < 16n ? 16n : sixteenth > 256n ? 256n : sixteenth
}

/** A range and the first and last address in it that may be used. */
interface UsableRange extends Cidr {
  readonly first: bigint
  readonly last: bigint
}

/** A string says why the range cannot be used. */
function usableRange(cidr: string): UsableRange | string {
  const range = parseCidr(cidr)
  if (!range) return `${cidr} is no range of addresses: ${cidrProblems(cidr).join(', ')}`
  const size = 1n << BigInt(bitsOf(range.family) - range.prefix)
  // The network's own address and, for IPv4, its broadcast address are nobody's.
  const unusable = range.family === 4 ? 2n : 1n
  if (size <= unusable + 1n) return `${cidr} has no address to give away`
  return { ...range, first: range.base + 1n, last: range.base + size - unusable }
}

function requireUsable(cidr: string): UsableRange {
  const range = usableRange(cidr)
  if (typeof range === 'string') throw new TypeError(range)
  return range
}

/** Why Services cannot get addresses from a range; `undefined` when they can. */
export function problemOfServiceRange(cidr: string): string | undefined {
  const range = usableRange(cidr)
  return typeof range === 'string' ? range : undefined
}

/** The first address of a service range, which is that of the API itself. */
export function firstServiceAddress(cidr: string): string {
  const { family, first } = requireUsable(cidr)
  return formatIp({ family, value: first })
}

class RangeAllocator implements IpAllocator {
  readonly cidr: string
  readonly family: 'IPv4' | 'IPv6'
  readonly #bits: 4 | 6
  readonly #first: bigint
  readonly #last: bigint
  readonly #random: RandomBelow
  readonly #taken = new Set<bigint>()

  constructor(cidr: string, random: RandomBelow) {
    const range = requireUsable(cidr)
    this.cidr = formatCidr(range)
    this.#bits = range.family
    this.family = range.family === 4 ? 'IPv4' : 'IPv6'
    this.#first = range.first
    this.#last = range.last
    this.#random = random
  }

  allocate(): string | undefined {
    // The first address is kept.
    const lowest = this.#first + 1n
    const split = this.#first + lowBandOf(this.#last - this.#first + 1n)
    const high = split > lowest ? split : lowest
    const found = this.#free(high, this.#last) ?? this.#free(lowest, high - 1n)
    if (found === undefined) return undefined
    this.#taken.add(found)
    return formatIp({ family: this.#bits, value: found })
  }

  take(ip: string): 'ok' | 'taken' | 'out-of-range' {
    const value = this.#valueOf(ip)
    if (value === undefined) return 'out-of-range'
    if (this.#taken.has(value)) return 'taken'
    this.#taken.add(value)
    return 'ok'
  }

  release(ip: string): void {
    const value = this.#valueOf(ip)
    if (value !== undefined) this.#taken.delete(value)
  }

  isKept(ip: string): boolean {
    return this.#valueOf(ip) === this.#first
  }

  contains(ip: string): boolean {
    return this.#valueOf(ip) !== undefined
  }

  #valueOf(ip: string): bigint | undefined {
    const parsed = parseIp(ip)
    if (parsed?.family !== this.#bits) return undefined
    return parsed.value >= this.#first && parsed.value <= this.#last ? parsed.value : undefined
  }

  /** A free address between two, both included: the first free one after a random start. */
  #free(low: bigint, high: bigint): bigint | undefined {
    const size = high - low + 1n
    if (size <= 0n) return undefined
    const start = this.#random(size)
    // No more addresses can be taken than there are entries, so this ends early in a large range.
    for (let step = 0n; step < size; step++) {
      const value = low + ((start + step) % size)
      if (!this.#taken.has(value)) return value
    }
    return undefined
  }
}

/** Opens a range such as `10.96.0.0/12` or `fd00::/108` for allocation. */
export const createIpAllocator = (cidr: string, random: RandomBelow = cryptoRandom): IpAllocator =>
  new RangeAllocator(cidr, random)
