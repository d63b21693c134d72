import type { IncomingMessage } from 'node:http'
import { judgeUpgrade } from '../../http/index.ts'
import { GuardRefused, malformed } from './refusal.ts'

/** The protocol that is asked for, if it is one that may be tunnelled; throws GuardRefused. */
export function protocolOf(request: IncomingMessage): string {
  const verdict = judgeUpgrade(request)
  if (verdict.problem === undefined) return verdict.protocol
  if (verdict.status === 400) throw malformed(verdict.problem)
  const headers = { 'Sec-WebSocket-Version': '13', Upgrade: 'websocket' }
  throw new GuardRefused(verdict.status, 'websocket-version', verdict.problem, headers)
}
