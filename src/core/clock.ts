/** Where time comes from, so that tests can turn it. */
export interface Clock {
  /** Milliseconds since 1970: for timestamps that leave the process. */
  now(): number
  /** Milliseconds that never jump: for durations. */
  monotonic(): number
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

/** A time as Kubernetes writes it: RFC 3339 in UTC, whole seconds. */
export const kubeTime = (epochMs: number): string =>
  `${new Date(epochMs).toISOString().slice(0, 19)}Z`

let knownSecond = Number.NaN
let knownPrefix = ''

/** A time as Kubernetes' MicroTime writes it: RFC 3339 in UTC, microseconds. */
export function kubeMicroTime(epochMs: number): string {
  // The audit asks for every request, and most calls fall into the second of the one before.
  const second = Math.floor(epochMs / 1_000)
  if (second !== knownSecond) {
    knownPrefix = new Date(second * 1_000).toISOString().slice(0, 20)
    knownSecond = second
  }
  const micros = Math.floor((epochMs - second * 1_000) * 1_000)
  return `${knownPrefix}${String(micros).padStart(6, '0')}Z`
}

/** The longest time that a timer can wait; Node.js fires longer ones at once. */
export const longestTimerMs = 2 ** 31 - 1
