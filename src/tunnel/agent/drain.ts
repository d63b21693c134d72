import { pause } from '../../core/index.ts'
import type { Activity } from './activity.ts'

/** Dials that were on their way when a server heard of the drain arrive within this time. */
const settleMs = 200

/** Resolves when nothing is under way and nothing new has come for a moment, or when `deadline` aborts. */
export async function settled(activity: Activity, deadline: AbortSignal): Promise<void> {
  while (!deadline.aborted) {
    await activity.idle(deadline)
    await pause(settleMs, deadline)
    if (activity.count === 0) return
  }
}
