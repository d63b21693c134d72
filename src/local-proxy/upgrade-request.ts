import type { IncomingMessage } from 'node:http'
import { judgeUpgrade } from '../http/index.ts'
import { malformed, Refusal } from './refusal.ts'

/** Checks a request for another protocol and returns which one. */
export function checkUpgrade(
  request: Pick<IncomingMessage, 'rawHeaders' | 'httpVersion' | 'method'>,
): string {
  const verdict = judgeUpgrade(request)
  if (verdict.problem === undefined) return verdict.protocol
  if (verdict.status === 400) throw malformed(verdict.problem)
  throw new Refusal(426, `Upgrade Required: ${verdict.problem}`, { 'Sec-WebSocket-Version': '13' })
}
