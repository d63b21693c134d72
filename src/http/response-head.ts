import { STATUS_CODES } from 'node:http'
import { headerPairs } from './raw-headers.ts'

/** The head of an HTTP/1.1 answer, for a socket that Node's server has let go of; to be written as latin1. */
export function responseHead(status: number, headers: readonly string[]): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`]
  for (const [name, value] of headerPairs(headers)) lines.push(`${name}: ${value}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}
