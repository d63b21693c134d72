import type { OptionTable } from '../../core/index.ts'
import { suggestion } from './option-names.ts'

/** What the words of a command line say, not yet checked against types. */
export interface Flags {
  /** Texts by option name, in the order given. */
  readonly texts: ReadonlyMap<string, readonly string[]>
  readonly positionals: readonly string[]
  readonly problems: readonly string[]
}

/** True when the words ask for help; nothing else matters then. */
export function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  const words = end < 0 ? argv : argv.slice(0, end)
  return words.includes('--help') || words.includes('-h')
}

/** Sorts the words of a command line into options and the rest. */
export function readFlags(table: OptionTable, argv: readonly string[]): Flags {
  const reader = new FlagReader(table)
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? ''
    if (word === '--') {
      reader.positionals.push(...argv.slice(index + 1))
      break
    }
    if (reader.read(word, argv[index + 1])) index++
  }
  return reader
}

class FlagReader implements Flags {
  readonly texts = new Map<string, string[]>()
  readonly positionals: string[] = []
  readonly problems: string[] = []
  readonly #table: OptionTable

  constructor(table: OptionTable) {
    this.#table = table
  }

  /** Returns true when the next word was this option's value. */
  read(word: string, next: string | undefined): boolean {
    if (word === '-' || !word.startsWith('-')) {
      this.positionals.push(word)
      return false
    }
    const [flag, attached] = splitOnce(word, '=')
    const name = this.#nameOf(flag)
    if (name === undefined) return this.#unknown(flag)
    if (attached !== undefined) return this.#add(name, attached)
    if (this.#table[name]?.type === 'boolean') return this.#add(name, 'true')
    if (next === undefined || (next.startsWith('--') && next !== '--')) {
      this.problems.push(`--${name} needs a value`)
      return false
    }
    this.#add(name, next)
    return true
  }

  #nameOf(flag: string): string | undefined {
    if (flag.startsWith('--')) {
      const name = flag.slice(2)
      return Object.hasOwn(this.#table, name) ? name : undefined
    }
    const letter = flag.slice(1)
    return Object.keys(this.#table).find((name) => this.#table[name]?.short === letter)
  }

  #unknown(flag: string): false {
    const negated = flag.startsWith('--no-') ? flag.slice(5) : ''
    if (Object.hasOwn(this.#table, negated) && this.#table[negated]?.type === 'boolean') {
      return this.#add(negated, 'false')
    }
    const meant = suggestion(flag.replace(/^-+/, ''), Object.keys(this.#table))
    const hint = meant === undefined ? '' : `, did you mean --${meant}?`
    this.problems.push(`there is no option ${flag}${hint}`)
    return false
  }

  #add(name: string, text: string): false {
    const texts = this.texts.get(name)
    if (texts) texts.push(text)
    else this.texts.set(name, [text])
    return false
  }
}

function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}
