/** The most that is joined into one write; a little more than what a link hands over at once. */
const slabBytes = 384 * 1024
/** Slabs that wait for the next write; a connection seldom has more than two on their way. */
const spareSlabs = 8
/** What is shorter than this is not worth a slab. */
const smallBytes = 4 * 1024

const spare: Buffer[] = []

/** A piece of memory to be written at once, and given back when it has left. */
export interface Slab {
  readonly bytes: Buffer
  release(): void
}

/**
 * Joins parts into few long pieces. TLS in Node.js joins them anyway, in memory that it takes anew for every write and
 * leaves to the garbage collector; this memory is used again.
 */
export function joinForWrite(parts: readonly Buffer[]): Slab[] {
  const only = parts.length === 1 ? parts[0] : undefined
  if (only) return [{ bytes: only, release: () => {} }]
  let total = 0
  for (const part of parts) total += part.length
  if (total <= smallBytes) return [{ bytes: Buffer.concat(parts, total), release: () => {} }]
  const slabs: Slab[] = []
  let memory = take()
  let used = 0
  for (const part of parts) {
    let start = 0
    while (start < part.length) {
      if (used === slabBytes) {
        slabs.push(filled(memory, used))
        memory = take()
        used = 0
      }
      const copied = part.copy(memory, used, start)
      used += copied
      start += copied
    }
  }
  slabs.push(filled(memory, used))
  return slabs
}

const take = (): Buffer => spare.pop() ?? Buffer.allocUnsafeSlow(slabBytes)

function filled(memory: Buffer, bytes: number): Slab {
  return {
    bytes: memory.subarray(0, bytes),
    release: () => {
      if (spare.length < spareSlabs) spare.push(memory)
    },
  }
}
