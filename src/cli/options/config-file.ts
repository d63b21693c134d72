import {
  isRecord,
  type OptionTable,
  parseYaml,
  YamlError,
  type YamlLimits,
} from '../../core/index.ts'
import { suggestion } from './values.ts'

/** What a configuration file says, not yet checked against types. */
export interface ConfigTexts {
  readonly texts: ReadonlyMap<string, readonly string[]>
  readonly problems: readonly string[]
}

/** Reads a YAML mapping from option names to values. */
export async function readConfigFile(
  table: OptionTable,
  path: string,
  content: string,
): Promise<ConfigTexts> {
  const texts = new Map<string, readonly string[]>()
  const document = await parse(content)
  if (typeof document === 'string') return { texts, problems: [`${path}: ${document}`] }
  const problems: string[] = []
  for (const [name, value] of Object.entries(document)) {
    const problem = problemWithName(table, name)
    const found = textsOf(value)
    if (problem !== undefined) problems.push(`${path}: ${problem}`)
    else if (found === undefined)
      problems.push(`${path}: ${name} must be a value or a list of values`)
    else texts.set(name, found)
  }
  return { texts, problems }
}

const yamlLimits: YamlLimits = {
  maxTokens: 100_000,
  maxDepth: 32,
  maxAliases: 0,
  maxExpandedSize: 4 * 1024 * 1024,
}

/** The mapping, or a sentence that says why there is none. */
async function parse(content: string): Promise<Record<string, unknown> | string> {
  let value: unknown
  try {
    ;({ value } = await parseYaml(content, { limits: yamlLimits, duplicateKeys: 'error' }))
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    const { problem, line, column, message } = error
    if (problem === 'aliases') return 'aliases are not supported'
    return line === undefined ? message : `line ${line}, column ${column}: ${message}`
  }
  if (value === null) return {}
  return isRecord(value) ? value : 'must be a mapping from option names to values'
}

function problemWithName(table: OptionTable, name: string): string | undefined {
  if (name === 'config') return 'config cannot be set in the configuration file itself'
  if (Object.hasOwn(table, name)) return undefined
  const meant = suggestion(name, Object.keys(table))
  return `there is no option ${name}${meant === undefined ? '' : `, did you mean ${meant}?`}`
}

function textsOf(value: unknown): string[] | undefined {
  const items: unknown[] = Array.isArray(value) ? value : [value]
  const texts: string[] = []
  for (const item of items) {
    if (typeof item !== 'string' && typeof item !== 'number' && typeof item !== 'boolean') {
      return undefined
    }
    texts.push(String(item))
  }
  return texts
}
