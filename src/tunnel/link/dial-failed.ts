import { SallyportError } from '../../core/index.ts'
import type { DialFailureReason } from './link.ts'

const inWords: Record<DialFailureReason, string> = {
  'refused-by-peer': 'the other end could not connect',
  'link-lost': 'the link to the other end was lost',
  timeout: 'the other end did not answer in time',
  cancelled: 'the dial was given up',
}

/** A dial through a link that came to nothing. */
export class DialFailed extends SallyportError {
  readonly code = 'TUNNEL_DIAL_FAILED'
  readonly reason: DialFailureReason
  /** What the other end said, or our own words where it said nothing. */
  readonly text: string

  constructor(reason: DialFailureReason, address: string, text: string = inWords[reason]) {
    super(`cannot reach ${address} through the tunnel: ${text}`)
    this.reason = reason
    this.text = text
  }
}
