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

/** A time as Kubernetes' MicroTime writes it: RFC 3339 in UTC, microseconds. */
export const kubeMicroTime = (epochMs: number): string =>
  `${new Date(epochMs).toISOString().slice(0, 23)}000Z`
