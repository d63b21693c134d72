import type * as yaml from 'yaml'
import type { CST, Document, ParsedNode, Parser } from 'yaml'
import { badRequest, type Work } from '../../core/index.ts'
import { maxYamlAliases, maxYamlDepth } from './limits.ts'

/** The YAML library; loaded when first needed, because few requests carry YAML. */
export type YamlLibrary = typeof yaml

/** The error for a YAML text that cannot be read. */
export const yamlProblem = (message: string) => badRequest(`yaml: ${message}`)

/** YAML 1.1 as Kubernetes reads it: `yes` is true, but times, sets and sexagesimals are text. */
const knownTags = new Set(['map', 'seq', 'str', 'null', 'bool', 'int', 'float', 'merge'])

/** The concrete syntax, given up as soon as a limit is passed. */
function* guardedTokens(
  library: YamlLibrary,
  parser: Parser,
  text: string,
  work: Work,
): Generator<CST.Token> {
  let aliases = 0
  for (const lexeme of new library.Lexer().lex(text)) {
    work.spend('yamlTokens', 1)
    if (lexeme.startsWith('*') && ++aliases > maxYamlAliases)
      throw yamlProblem('document contains excessive aliasing')
    yield* parser.next(lexeme)
    if (parser.stack.length > maxYamlDepth) throw yamlProblem('exceeded max depth')
  }
  yield* parser.end()
}

/** A document and the counter that knows the line of each of its offsets. */
export interface YamlDocument {
  readonly document: Document.Parsed<ParsedNode> | undefined
  readonly lineOf: (offset: number) => number
}

/** Reads the one document of a text. */
export function composeYaml(library: YamlLibrary, text: string, work: Work): YamlDocument {
  const lines = new library.LineCounter()
  lines.addNewLine(0)
  const parser = new library.Parser(lines.addNewLine)
  // All tokens before the first node, so that the library only ever sees what is within the limits.
  const tokens = [...guardedTokens(library, parser, text, work)]
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
