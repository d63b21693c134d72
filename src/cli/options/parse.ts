import {
  CommandFailed,
  type OptionDeclaration,
  type OptionTable,
  type OptionValues,
  Secret,
  systemErrorCode,
  WrongUsage,
} from '../../core/index.ts'
import { readConfigFile } from './config-file.ts'
import type { ArgumentDeclaration, CommandShape } from './help.ts'
import { environmentOf, propertyOf, readValue, suggestion } from './values.ts'

/** What the words of a command line say, not yet checked against types. */
interface Flags {
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
function readFlags(table: OptionTable, argv: readonly string[]): Flags {
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

/** Where options may come from. A flag beats the environment, that beats the file, that the default. */
export interface OptionSources {
  /** The words after the command. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Reads the file that the option `config` names, if the table has that option. */
  readonly readFile: (path: string) => Promise<string>
}

/** A command line that was understood. */
export interface ParsedOptions<Table extends OptionTable> {
  readonly values: OptionValues<Table>
  readonly positionals: readonly string[]
}

interface Found {
  readonly texts: readonly string[]
  /** For messages, for example `--secure-port`. */
  readonly where: string
}

/** Reads every option of a command; throws WrongUsage with all problems at once. */
export async function parseOptions<Table extends OptionTable>(
  shape: CommandShape & { readonly options: Table },
  sources: OptionSources,
): Promise<ParsedOptions<Table>> {
  const table = shape.options
  const flags = readFlags(table, sources.argv)
  const problems = [...flags.problems]
  problems.push(...problemsOfArguments(shape.arguments ?? [], flags.positionals))
  const found = fromFlagsAndEnvironment(table, flags.texts, sources.env)
  await addFromFile(table, { found, problems, readFile: sources.readFile })

  const values: Record<string, unknown> = {}
  for (const [name, declaration] of Object.entries(table)) {
    values[propertyOf(name)] = valueOf(name, declaration, found.get(name), problems)
  }
  if (problems.length > 0) throw wrongUsage(problems)
  // Every property was read as its declaration says, which is what the type says too.
  return { values: values as OptionValues<Table>, positionals: flags.positionals }
}

function fromFlagsAndEnvironment(
  table: OptionTable,
  flags: ReadonlyMap<string, readonly string[]>,
  env: OptionSources['env'],
): Map<string, Found> {
  const found = new Map<string, Found>()
  for (const [name, declaration] of Object.entries(table)) {
    const texts = flags.get(name)
    const variable = environmentOf(name, declaration)
    const text = env[variable]
    if (texts) found.set(name, { texts, where: `--${name}` })
    else if (text !== undefined && text !== '') found.set(name, { texts: [text], where: variable })
  }
  return found
}

async function addFromFile(
  table: OptionTable,
  into: { found: Map<string, Found>; problems: string[]; readFile: OptionSources['readFile'] },
): Promise<void> {
  const path = into.found.get('config')?.texts.at(-1)
  if (path === undefined) return
  let content: string
  try {
    content = await into.readFile(path)
  } catch (error) {
    // It has its own reason and hint.
    if (error instanceof CommandFailed) throw error
    into.problems.push(`cannot read the configuration file ${path}: ${readFailure(error)}`)
    return
  }
  const { texts, problems } = await readConfigFile(table, path, content)
  into.problems.push(...problems)
  for (const [name, given] of texts) {
    if (!into.found.has(name)) into.found.set(name, { texts: given, where: `${path}: ${name}` })
  }
}

function readFailure(error: unknown): string {
  const code = systemErrorCode(error) ?? 'unknown error'
  const words: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    EACCES: 'this user may not read it',
    EISDIR: 'it is a directory',
  }
  return words[code] ?? code
}

function valueOf(
  name: string,
  declaration: OptionDeclaration,
  found: Found | undefined,
  problems: string[],
): unknown {
  if (found === undefined) {
    if (declaration.required) problems.push(`--${name} is required: ${declaration.describe}`)
    return declaration.default ?? (declaration.repeatable ? [] : undefined)
  }
  const texts = declaration.repeatable
    ? found.texts.flatMap((text) => text.split(',').map((item) => item.trim()))
    : found.texts.slice(-1)
  const values = texts.map((text) => {
    const reading = readValue(declaration, text)
    if (reading.ok) return declaration.secret ? new Secret(String(reading.value)) : reading.value
    const shown = declaration.secret ? '' : `, not "${text}"`
    problems.push(`${found.where} ${reading.why}${shown}`)
    return undefined
  })
  return declaration.repeatable ? values : values[0]
}

function problemsOfArguments(
  declared: readonly ArgumentDeclaration[],
  given: readonly string[],
): string[] {
  const takesAll = declared.some((argument) => argument.repeatable)
  const missing = declared.slice(given.length).filter((argument) => argument.required)
  const extra = takesAll ? [] : given.slice(declared.length)
  return [
    ...missing.map((argument) => `${argument.name} is missing: ${argument.describe}`),
    ...extra.map((word) => `unexpected argument "${word}"`),
  ]
}

function wrongUsage(problems: readonly string[]): WrongUsage {
  const [first = ''] = problems
  const listed = ['several things are wrong:', ...problems.map((problem) => `  - ${problem}`)]
  const said = problems.length === 1 ? first : listed.join('\n')
  return new WrongUsage(said)
}
