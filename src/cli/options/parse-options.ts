import {
  type OptionDeclaration,
  type OptionTable,
  type OptionValues,
  Secret,
  systemErrorCode,
  WrongUsage,
} from '../../core/index.ts'
import type { ArgumentDeclaration, CommandShape } from './command-shape.ts'
import { environmentOf, propertyOf } from './option-names.ts'
import { readConfigFile } from './read-config-file.ts'
import { readFlags } from './read-flags.ts'
import { readValue } from './read-value.ts'

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
