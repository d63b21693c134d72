import { endToEndHeaders, refuseAmbiguousHeaders } from '../../http/index.ts'

/** What becomes of a request's header, by its name. */
export interface HeaderRule {
  /** The name in lower case. */
  readonly name: string
  /** Claims an identity. */
  readonly isIdentity: boolean
  /** Goes on to the add-on. */
  readonly isKept: boolean
  /** May be there only once. */
  readonly isSingle: boolean
  /** Is an odd spelling of a header that frames the body. */
  readonly isRefused: boolean
}

const maxKnown = 1_000
const longestKnown = 64

/** Answered here, or stated anew. */
const own = new Set(['expect', 'x-forwarded-for'])

/** The rules of `http/` and of identities, looked up once per spelling: clients send the same few names. */
export class HeaderRules {
  readonly #isIdentity: (name: string) => boolean
  #known = new Map<string, HeaderRule>()

  constructor(isIdentity: (name: string) => boolean) {
    this.#isIdentity = isIdentity
  }

  /** Whether a header claims an identity, in any spelling. */
  isIdentity(name: string): boolean {
    return this.of(name).isIdentity
  }

  of(spelt: string): HeaderRule {
    const known = this.#known.get(spelt)
    if (known) return known
    const name = spelt.toLowerCase()
    const isHop = endToEndHeaders([spelt, '']).length === 0
    const isIdentity = this.#isIdentity(spelt)
    const rule = {
      name,
      isIdentity,
      isKept: !isHop && !own.has(name) && !isIdentity,
      isRefused: isAmbiguous([spelt, '']),
      isSingle: isAmbiguous([spelt, '', spelt, '']),
    }
    // A client that sends thousands of names must not fill the memory.
    if (this.#known.size >= maxKnown) this.#known = new Map()
    if (spelt.length <= longestKnown) this.#known.set(spelt, rule)
    return rule
  }
}

function isAmbiguous(rawHeaders: string[]): boolean {
  try {
    refuseAmbiguousHeaders({ rawHeaders, headers: {} })
    return false
  } catch {
    return true
  }
}
