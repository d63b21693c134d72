import type * as yaml from 'yaml'
import type { CST, Document, ParsedNode, Parser } from 'yaml'
import { badRequest } from '../../core/index.ts'

/** The YAML library; loaded when first needed, because few requests carry YAML. */
export type YamlLibrary = typeof yaml

/** The error for a YAML text that cannot be read. */
export const yamlProblem = (message: string) => badRequest(`yaml: ${message}`)

/** Far more than any kind nests; the library needs a stack frame per level and must never run out. */
const maxDepth = 100
/** About a second of work for the library, which would hold up everybody else. */
const maxTokens = 200_000
/** Few lines with many aliases could become gigabytes. */
const maxAliases = 20

/** YAML 1.1 as Kubernetes reads it: `yes` is true, but times, sets and sexagesimals are text. */
const knownTags = new Set(['map', 'seq', 'str', 'null', 'bool', 'int', 'float', 'merge'])

function checkLimits(parser: Parser, tokens: number, aliases: number): void {
  if (parser.stack.length > maxDepth) throw yamlProblem('exceeded max depth')
  if (tokens > maxTokens)
    throw yamlProblem(`more than ${maxTokens} tokens: send an object of this size as JSON`)
  if (aliases > maxAliases) throw yamlProblem('document contains excessive aliasing')
}

/** The concrete syntax, given up as soon as a limit is passed. */
function* guardedTokens(library: YamlLibrary, parser: Parser, text: string): Generator<CST.Token> {
  let tokens = 0
  let aliases = 0
  for (const lexeme of new library.Lexer().lex(text)) {
    tokens++
    if (lexeme.startsWith('*')) aliases++
    yield* parser.next(lexeme)
    checkLimits(parser, tokens, aliases)
  }
  yield* parser.end()
}

/** A document and the counter that knows the line of each of its offsets. */
export interface YamlDocument {
  readonly document: Document.Parsed<ParsedNode> | undefined
  readonly lineOf: (offset: number) => number
}

/** Reads the one document of a text. */
export function composeYaml(library: YamlLibrary, text: string): YamlDocument {
  const lines = new library.LineCounter()
  lines.addNewLine(0)
  const parser = new library.Parser(lines.addNewLine)
  // All tokens before the first node, so that the library only ever sees what is within the limits.
  const tokens = [...guardedTokens(library, parser, text)]
  const composer = new library.Composer({
    version: '1.1',
    uniqueKeys: false,
    customTags: (tags) =>
      tags.filter(
        (tag) =>
          typeof tag !== 'string' &&
          knownTags.has(tag.tag.slice('tag:yaml.org,2002:'.length)) &&
          tag.format !== 'TIME',
      ),
  })
  const documents = [...composer.compose(tokens, false, text.length)]
  if (documents.length > 1) throw yamlProblem('the body has more than one document')
  const fault = documents[0]?.errors[0]
  if (fault !== undefined) {
    const { line } = lines.linePos(fault.pos[0])
    throw yamlProblem(`line ${line}: ${fault.message}`)
  }
  return { document: documents[0], lineOf: (offset) => lines.linePos(offset).line }
}
