/** A half-open range of keys; without `to` it has no end. */
export interface KeyRange {
  readonly from: string
  readonly to: string | undefined
}

/** The keys that start with `prefix` and, if given, sort after `after`. */
export function prefixRange(prefix: string, after?: string): KeyRange {
  // A key with a NUL added is the very next key in string order.
  const from = after !== undefined && after >= prefix ? `${after}\0` : prefix
  return { from, to: endOfPrefix(prefix) }
}

/** Whether `key` lies in `range`. */
export function inRange(range: KeyRange, key: string): boolean {
  return key >= range.from && (range.to === undefined || key < range.to)
}

function endOfPrefix(prefix: string): string | undefined {
  for (let length = prefix.length; length > 0; length--) {
    const last = prefix.charCodeAt(length - 1)
    if (last < 0xffff) return prefix.slice(0, length - 1) + String.fromCharCode(last + 1)
  }
  return undefined
}
