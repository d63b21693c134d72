import { isReadableCoding } from './html-stream.ts'

/**
 * The headers of a request, which asks for no coding that we cannot read: browsers take more of them than we do, and
 * a page in one of those would keep its addresses.
 */
export function withReadableCodings(headers: readonly string[]): string[] {
  return headers.map((text, index) => {
    const isValue = index % 2 === 1
    return isValue && headers[index - 1]?.toLowerCase() === 'accept-encoding'
      ? readable(text)
      : text
  })
}

function readable(accepted: string): string {
  const kept = accepted
    .split(',')
    .map((item) => item.trim())
    .filter((item) => isReadableCoding(item.split(';', 1)[0]?.trim().toLowerCase() ?? ''))
    .filter((item) => item !== '')
  return kept.join(', ') || 'identity'
}
