import { WrongUsage } from '../core/index.ts'
import type { HostName } from './addon-origin.ts'
import { forbidden } from './refusal.ts'

/** Regular expressions of which one is enough. */
export type PatternList = readonly RegExp[]

/** Reads a list as kubectl does: split at every comma, each part unanchored, nothing matches an empty list. */
export function parsePatterns(text: string, flag: string): PatternList {
  return text === '' ? [] : text.split(',').map((part) => compile(part, flag))
}

/** Whether one of the patterns matches somewhere in the text. */
export const matchesAny = (patterns: PatternList, text: string): boolean =>
  patterns.some((pattern) => pattern.test(text))

function compile(source: string, flag: string): RegExp {
  const { body, flags } = fromGo(source)
  try {
    return new RegExp(body, flags)
  } catch {
    throw new WrongUsage(`--${flag}: ${JSON.stringify(source)} is no regular expression`)
  }
}

/** What Go writes differently: flags in front, named groups, ends of the text. */
function fromGo(source: string): { readonly body: string; readonly flags: string } {
  const leading = /^\(\?([ims]+)\)/.exec(source)
  const body = source
    .slice(leading?.[0].length ?? 0)
    .replaceAll('(?P<', '(?<')
    .replaceAll(/\\([Az])/g, (_match, end: string) => (end === 'A' ? '^' : '$'))
  return { body, flags: [...new Set(leading?.[1] ?? '')].join('') }
}

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
