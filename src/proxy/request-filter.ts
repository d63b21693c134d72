import type { HostName } from './host-header.ts'
import { matchesAny, type PatternList, parsePatterns } from './pattern-list.ts'
import { forbidden } from './refusal.ts'

/** The filter flags, as texts. */
export interface FilterOptions {
  readonly acceptHosts: string
  readonly acceptPaths: string
  readonly rejectPaths: string
  readonly rejectMethods: string
}

/** Decides by host, path and method; the paths are those that the API server would see, decoded. */
export class RequestFilter {
  readonly #acceptHosts: PatternList
  readonly #acceptPaths: PatternList
  readonly #rejectPaths: PatternList
  readonly #rejectMethods: PatternList

  constructor(options: FilterOptions) {
    this.#acceptHosts = parsePatterns(options.acceptHosts, 'accept-hosts')
    this.#acceptPaths = parsePatterns(options.acceptPaths, 'accept-paths')
    this.#rejectPaths = parsePatterns(options.rejectPaths, 'reject-paths')
    this.#rejectMethods = parsePatterns(options.rejectMethods, 'reject-methods')
  }

  /** Refuses a host that does not belong to us: a foreign name may be pointed at this machine (DNS rebinding). */
  checkHost({ name }: HostName): void {
    if (this.#accepts(name)) return
    throw forbidden(`the host ${name} is not accepted (--accept-hosts)`)
  }

  /** Refuses a path or method, in kubectl's order. */
  checkPath(method: string, path: string): void {
    if (matchesAny(this.#rejectPaths, path))
      throw forbidden('the path is rejected (--reject-paths)')
    if (matchesAny(this.#rejectMethods, method))
      throw forbidden(`the method ${method} is rejected (--reject-methods)`)
    if (!matchesAny(this.#acceptPaths, path))
      throw forbidden('the path is not accepted (--accept-paths)')
  }

  /** The address of an add-on is ours wherever `localhost` is: nobody can own a name under it. */
  #accepts(name: string): boolean {
    if (matchesAny(this.#acceptHosts, name)) return true
    // kubectl takes the brackets off where a port follows, and patterns were written for that.
    if (name.startsWith('[')) return matchesAny(this.#acceptHosts, name.slice(1, -1))
    return name.endsWith('.localhost') && matchesAny(this.#acceptHosts, 'localhost')
  }
}
