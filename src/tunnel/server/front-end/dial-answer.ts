import { DialFailed } from '../../link/index.ts'
import { NoAgentAvailable } from '../errors.ts'

/** Why a dial came to nothing, in the words that go back to whoever asked for it. */
export function failureText(error: unknown): string {
  if (error instanceof NoAgentAvailable) return error.message
  return error instanceof DialFailed ? error.text : 'internal error'
}

/** The HTTP status of a dial that came to nothing; the words of agents are all there is to go by. */
export function failureStatus(error: unknown): 500 | 502 | 503 | 504 {
  if (!(error instanceof DialFailed)) return 500
  if (error.reason === 'timeout') return 504
  if (error.reason !== 'refused-by-peer') return 502
  if (/timeout|timed out|deadline/i.test(error.text)) return 504
  return /too many open files/i.test(error.text) ? 503 : 502
}

/** The body that goes with that status. */
export const failureBody = (error: unknown): string =>
  error instanceof NoAgentAvailable
    ? `currently no tunnels available: ${error.message}`
    : failureText(error)
