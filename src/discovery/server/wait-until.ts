import { longestTimerMs } from '../../core/index.ts'

/** How long to wait for a moment; for one that no timer reaches, as long as one can. */
export const waitUntil = (momentMs: number, nowMs: number): number =>
  Math.min(momentMs - nowMs, longestTimerMs)
