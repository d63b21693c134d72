import { hash } from 'node:crypto'

/** Far more than a browser keeps for a host, since values that were replaced stay here until they are the oldest. */
const maxCookiesPerSetter = 500
const maxSetters = 500

/**
 * The cookies that each upstream application has set through this proxy. Only these are forwarded to it: browsers
 * share cookies between all ports of a host, scripts and other local servers can set any, and a cookie that was left
 * by an add-on of another cluster has the same host.
 *
 * Values are kept as digests, in memory only: cookies of an earlier run are not forwarded, and users log in again.
 */
export class SeenCookies {
  /** Setters and their digests, each with the least recently used one in front. */
  readonly #setters = new Map<string, Set<string>>()

  /** Remembers the cookie of a Set-Cookie header. */
  add(setter: string, setCookie: string): void {
    const [pair = ''] = setCookie.split(';', 1)
    const known = this.#setters.get(setter) ?? new Set()
    touch(known, digestOf(pair), maxCookiesPerSetter)
    this.#setters.delete(setter)
    this.#setters.set(setter, known)
    if (this.#setters.size > maxSetters) dropFirst(this.#setters)
  }

  /** The cookies of a Cookie header that this setter has set; empty if there is none. */
  filter(setter: string, cookies: string): string {
    const known = this.#setters.get(setter)
    if (!known) return ''
    return cookies
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => {
        const digest = digestOf(pair)
        if (!known.has(digest)) return false
        touch(known, digest, maxCookiesPerSetter)
        return true
      })
      .join('; ')
  }
}

function touch(known: Set<string>, digest: string, max: number): void {
  known.delete(digest)
  known.add(digest)
  if (known.size > max) dropFirst(known)
}

function dropFirst(entries: { keys(): Iterator<string>; delete(key: string): boolean }): void {
  const { value, done } = entries.keys().next()
  if (!done) entries.delete(value)
}

/** Of the pair as a browser sends it back: without the spaces around name and value (RFC 6265 section 5.2). */
function digestOf(pair: string): string {
  const mark = pair.indexOf('=')
  const name = pair.slice(0, Math.max(mark, 0)).trim()
  const value = pair.slice(mark + 1).trim()
  return hash('sha256', name === '' ? value : `${name}=${value}`, 'base64')
}
