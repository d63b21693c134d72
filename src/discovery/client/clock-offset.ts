import type { RawAnswer } from './https-get.ts'

/** A signed request is good for a minute either way; what is less than half of it is not the reason. */
const noticeableMs = 30_000

/** How far this machine's clock is ahead of the server's by the `Date` of an answer; undefined if it does not tell. */
export function clockOffset(answer: Pick<RawAnswer, 'headers'>, nowMs: number): number | undefined {
  const date = Date.parse(answer.headers.date ?? '')
  return Number.isNaN(date) ? undefined : nowMs - date
}

/** A clock that is far off in words; empty if it is right or nobody can tell. */
export function clockRemark(offsetMs: number | undefined): string {
  if (offsetMs === undefined || Math.abs(offsetMs) < noticeableMs) return ''
  const seconds = Math.round(Math.abs(offsetMs) / 1000)
  return `; this machine's clock is ${seconds} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the server's`
}
