import { refuseAmbiguousHeaders } from '../../http/index.ts'
import type { Exchange } from '../exchange.ts'

/** Refuses headers that two readers could understand in two ways. */
export function checkHeaders(exchange: Exchange): void {
  refuseAmbiguousHeaders(exchange.request)
}
