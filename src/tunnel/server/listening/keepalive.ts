import { longestTimerMs } from '../../../core/index.ts'
import type { Keepalive } from '../../grpc/index.ts'

const defaultAnswerMs = 20_000

/** The keepalive of a flag; 0 is as good as never. */
export const keepaliveOf = (
  timeMs: number,
  timeoutMs = defaultAnswerMs,
): { readonly keepalive: Keepalive } => ({
  keepalive: { timeMs: timeMs === 0 ? longestTimerMs : timeMs, timeoutMs },
})
