/**
 * The value in memory of its own if it is a small part of something larger. Small buffers share
 * slabs with whatever else was allocated then, and one live value would keep a whole slab.
 */
export function leanValue(value: Buffer): Buffer {
  if (value.length * 2 > value.buffer.byteLength) return value
  const copy = Buffer.allocUnsafeSlow(value.length)
  value.copy(copy)
  return copy
}
