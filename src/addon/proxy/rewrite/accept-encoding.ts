import { isReadableCoding } from './html-stream.ts'

/** The only coding whose reader may need megabytes. */
export const costlyCoding = 'br'

/**
 * The headers of a request, which asks for no coding that we cannot read, and only for those whose readers are small
 * unless there is room: browsers take more of them than we do, and a page in one of those would keep its addresses.
 */
export function withReadableCodings(
  headers: readonly string[],
  hasRoom: () => boolean = () => true,
): string[] {
  return headers.map((text, index) => {
    const isValue = index % 2 === 1
    return isValue && headers[index - 1]?.toLowerCase() === 'accept-encoding'
      ? readable(text, hasRoom)
      : text
  })
}

/** Whether a request is likely to be answered with a page: browsers that are sent to one say so. */
export const wantsPage = (headers: readonly string[]): boolean =>
  headers.some(
    (text, index) =>
      index % 2 === 1 && headers[index - 1]?.toLowerCase() === 'accept' && /text\/html/i.test(text),
  )

function readable(accepted: string, hasRoom: () => boolean): string {
  const kept = accepted
    .split(',')
    .map((item) => item.trim())
    .filter((item) => {
      const coding = item.split(';', 1)[0]?.trim().toLowerCase() ?? ''
      return coding !== '' && isReadableCoding(coding) && (coding !== costlyCoding || hasRoom())
    })
  return kept.join(', ') || 'identity'
}
