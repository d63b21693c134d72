import { randomUUID } from 'node:crypto'
import type { Exchange } from '../exchange.ts'

const usableAuditId = /^[\w.:-]{1,64}$/

/** Names the exchange and sets the headers that every answer has. */
export function accept(exchange: Exchange): void {
  const wished = exchange.request.headers['audit-id']
  exchange.auditId =
    typeof wished === 'string' && usableAuditId.test(wished) ? wished : randomUUID()
  exchange.response.setHeader('Audit-Id', exchange.auditId)
  exchange.response.setHeader('Cache-Control', 'no-cache, private')
}
