import type * as yaml from 'yaml'
import type { CST, Document } from 'yaml'

/** The YAML library; loaded when first needed. */
type YamlLibrary = typeof yaml

/** What a text may cost. The library needs a stack frame per level of nesting and expands aliases without limit. */
export interface YamlLimits {
  readonly maxTokens: number
  readonly maxDepth: number
  readonly maxAliases: number
  /** Nodes and characters of strings, after aliases have been replaced by what they refer to. */
  readonly maxExpandedSize: number
}

/** How a text is read. */
export interface YamlOptions {
  readonly limits: YamlLimits
  /** What a key that a mapping has twice does; `last`: the last one counts, and they are reported. */
  readonly duplicateKeys: 'error' | 'last'
  /** Called for each token, to account for the work. */
  readonly onToken?: () => void
}

/** Why a text is not accepted. */
export type YamlProblem =
  | 'syntax'
  | 'multiple-documents'
  | 'too-many-tokens'
  | 'too-deep'
  | 'aliases'
  | 'unsupported-value'

/** A text that is not accepted. The message never quotes the text, which may hold credentials; `detail` does. */
export class YamlError extends Error {
  readonly problem: YamlProblem
  readonly line: number | undefined
  readonly column: number | undefined
  readonly detail: string

  constructor(
    problem: YamlProblem,
    message: string,
    at: { readonly line?: number; readonly column?: number; readonly detail?: string } = {},
  ) {
    super(message)
    this.problem = problem
    this.line = at.line
    this.column = at.column
    this.detail = at.detail ?? message
  }
}

/** The value of a text. */
export interface ParsedYaml {
  readonly value: unknown
  /** Keys that a mapping has more than once, the first 100. */
  readonly duplicates: readonly { readonly key: unknown; readonly line: number }[]
}

/** As many as Kubernetes reports at most. */
const maxDuplicates = 100

/** YAML 1.1 as Go's readers in Kubernetes know it: `yes` is true, but times, sets and sexagesimals are strings. */
const knownTags = new Set(['map', 'seq', 'str', 'null', 'bool', 'int', 'float', 'merge'])

/**
 * Reads the one document of a YAML or JSON text, within limits, as Kubernetes reads it. An empty text is `null`.
 *
 * @throws YamlError
 */
export async function parseYaml(text: string, options: YamlOptions): Promise<ParsedYaml> {
  const library = await import('yaml')
  const lines = new library.LineCounter()
  lines.addNewLine(0)
  // All tokens before the first node, so that the library only ever composes what is within the limits.
  const tokens = readTokens(library, text.replace(/^\uFEFF/, ''), lines, options)
  const document = compose(library, tokens, text.length, { lines, options })
  if (!document) return { value: null, duplicates: [] }
  checkAliases(library, document)
  const value = toValue(document)
  checkExpansion(value, options.limits)
  return { value, duplicates: duplicatesIn(library, document, lines) }
}

function readTokens(
  library: YamlLibrary,
  text: string,
  lines: yaml.LineCounter,
  { limits, onToken }: YamlOptions,
): CST.Token[] {
  const parser = new library.Parser(lines.addNewLine)
  const tokens: CST.Token[] = []
  let count = 0
  let aliases = 0
  for (const lexeme of new library.Lexer().lex(text)) {
    onToken?.()
    if (++count > limits.maxTokens) throw new YamlError('too-many-tokens', 'is too large')
    if (lexeme.startsWith('*') && ++aliases > limits.maxAliases) throw excessiveAliasing()
    for (const token of parser.next(lexeme)) tokens.push(token)
    if (parser.stack.length > limits.maxDepth)
      throw new YamlError('too-deep', 'is nested too deeply')
  }
  for (const token of parser.end()) tokens.push(token)
  return tokens
}

const excessiveAliasing = (): YamlError =>
  new YamlError('aliases', 'document contains excessive aliasing')

function compose(
  library: YamlLibrary,
  tokens: CST.Token[],
  length: number,
  { lines, options }: { readonly lines: yaml.LineCounter; readonly options: YamlOptions },
): Document.Parsed | undefined {
  const composer = new library.Composer({
    version: '1.1',
    uniqueKeys: options.duplicateKeys === 'error',
    customTags: (tags) =>
      tags.filter(
        (tag) =>
          typeof tag !== 'string' &&
          knownTags.has(tag.tag.slice('tag:yaml.org,2002:'.length)) &&
          tag.format !== 'TIME',
      ),
  })
  const [document, second] = composer.compose(tokens, false, length)
  const fault = document?.errors[0]
  if (fault) {
    const { line, col: column } = lines.linePos(fault.pos[0])
    const what = fault.code.toLowerCase().replaceAll('_', ' ')
    throw new YamlError('syntax', what, { line, column, detail: fault.message })
  }
  if (second) {
    const { line, col: column } = lines.linePos(second.range[0])
    throw new YamlError('multiple-documents', 'more than one document', { line, column })
  }
  return document
}

function checkAliases(library: YamlLibrary, document: Document.Parsed): void {
  library.visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document) === undefined)
        throw new YamlError('aliases', 'unknown anchor', {
          detail: `unknown anchor '${alias.source}' referenced`,
        })
    },
  })
}

function toValue(document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: -1 })
  } catch (cause) {
    // The library refuses, for example, a merge key with an alias that is not a mapping.
    throw Object.assign(new YamlError('aliases', 'aliases cannot be resolved'), { cause })
  }
}

/** An alias makes one node appear many times, or contain itself. */
function checkExpansion(value: unknown, { maxExpandedSize, maxDepth }: YamlLimits): void {
  const open: { readonly node: unknown; readonly depth: number }[] = [{ node: value, depth: 0 }]
  let size = 0
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, depth } = next
    size += typeof node === 'string' ? node.length : 1
    if (size > maxExpandedSize || depth > maxDepth) throw excessiveAliasing()
    if (typeof node === 'number' && !Number.isFinite(node))
      throw new YamlError('unsupported-value', `unsupported value: ${node}`)
    if (typeof node !== 'object' || node === null) continue
    for (const inner of Object.values(node)) open.push({ node: inner, depth: depth + 1 })
  }
}

function duplicatesIn(
  library: YamlLibrary,
  document: Document.Parsed,
  lines: yaml.LineCounter,
): ParsedYaml['duplicates'] {
  const found: { key: unknown; line: number }[] = []
  library.visit(document, {
    Map(_key, map) {
      const seen = new Set<unknown>()
      for (const { key } of map.items) {
        if (!library.isScalar(key)) continue
        if (seen.has(key.value) && found.length < maxDuplicates)
          found.push({ key: key.value, line: lines.linePos(key.range?.[0] ?? 0).line })
        seen.add(key.value)
      }
    },
  })
  return found
}
