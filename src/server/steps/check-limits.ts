import type { Exchange } from '../exchange.ts'
import { checkRequestSize } from '../limits.ts'
import type { PipelineParts } from '../pipeline-parts.ts'

/** Refuses what is too large to be looked at. */
export function checkLimits(exchange: Exchange, parts: PipelineParts): void {
  checkRequestSize(exchange.request, parts.limits)
}
