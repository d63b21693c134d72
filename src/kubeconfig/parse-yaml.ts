import type * as yaml from 'yaml'
import type { CST, Document, Parser } from 'yaml'
import { KubeconfigInvalid } from './kubeconfig.ts'

/** The YAML library; loaded when first needed. */
type YamlLibrary = typeof yaml

/** A text may come from a stranger (discovery), and none may cost more than a moment or exhaust the stack. */
const limits = {
  characters: 4 * 1024 * 1024,
  tokens: 400_000,
  depth: 100,
  aliases: 100,
  /** Nodes after aliases have been replaced by what they stand for. */
  nodes: 400_000,
}

const notInKubectl = /(int|float):?time|timestamp|binary|omap|pairs|set/i

/**
 * Reads YAML (or JSON) as kubectl does: version 1.1, no key twice. Messages name the place but never
 * quote the text, in which there are credentials.
 */
export async function parseYaml(text: string, path: string): Promise<unknown> {
  const refuse = (...problems: string[]): KubeconfigInvalid => new KubeconfigInvalid(path, problems)
  if (text.length > limits.characters) throw refuse('is too large to be read')
  const library = await import('yaml')
  const lines = new library.LineCounter()
  lines.addNewLine(0)
  const tokens = guardedTokens(library, text.replace(/^\uFEFF/, ''), lines)
  if (typeof tokens === 'string') throw refuse(tokens)
  const [document, second] = compose(library, tokens, text.length)
  const faults = [
    ...(document?.errors ?? []).map(({ code, pos }) => ({ code: code as string, at: pos[0] })),
    ...(second ? [{ code: 'MULTIPLE_DOCS', at: second.range[0] }] : []),
  ]
  if (faults.length > 0) {
    const problems = faults.map(({ code, at }) => {
      const { line, col } = lines.linePos(at)
      return `line ${line}, column ${col} is not valid YAML: ${code.toLowerCase().replaceAll('_', ' ')}`
    })
    throw refuse(...problems)
  }
  const value = document && plainValue(document)
  if (value === tooMuch) throw refuse('the aliases in it cannot be resolved')
  return value
}

/** The concrete syntax, so that the library composes only what is within the limits; or what is wrong with it. */
function guardedTokens(
  library: YamlLibrary,
  text: string,
  lines: yaml.LineCounter,
): CST.Token[] | string {
  const parser: Parser = new library.Parser(lines.addNewLine)
  const tokens: CST.Token[] = []
  let count = 0
  let aliases = 0
  for (const lexeme of new library.Lexer().lex(text)) {
    count++
    if (lexeme.startsWith('*')) aliases++
    tokens.push(...parser.next(lexeme))
    if (parser.stack.length > limits.depth) return 'is nested too deeply'
    if (count > limits.tokens) return 'is too large to be read'
    if (aliases > limits.aliases) return 'the aliases in it cannot be resolved'
  }
  tokens.push(...parser.end())
  return tokens
}

function compose(library: YamlLibrary, tokens: CST.Token[], length: number): Document.Parsed[] {
  const composer = new library.Composer({
    version: '1.1',
    // The types of 1.1 that Go's reader does not know; with them `12:30` would be a number.
    customTags: (tags) =>
      tags.filter((tag) => typeof tag === 'string' || !notInKubectl.test(tag.format ?? tag.tag)),
  })
  return [...composer.compose(tokens, false, length)]
}

const tooMuch = Symbol('more than its aliases may stand for')

function plainValue(document: Document.Parsed): unknown {
  try {
    const value: unknown = document.toJS({ maxAliasCount: limits.aliases })
    return isWithinLimits(value) ? value : tooMuch
  } catch {
    return tooMuch
  }
}

function isWithinLimits(value: unknown): boolean {
  const open: { readonly node: unknown; readonly depth: number }[] = [{ node: value, depth: 0 }]
  let nodes = 0
  for (let next = open.pop(); next; next = open.pop()) {
    if (++nodes > limits.nodes || next.depth > limits.depth) return false
    if (typeof next.node !== 'object' || next.node === null) continue
    for (const node of Object.values(next.node)) open.push({ node, depth: next.depth + 1 })
  }
  return true
}
