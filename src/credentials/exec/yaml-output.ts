import type * as yaml from 'yaml'
import type { CST, Parser } from 'yaml'

/** A credential nests two levels; the library needs a stack frame per level and must never run out. */
const maxDepth = 32
/** Far more than any credential has, and no work to speak of. */
const maxTokens = 20_000

const knownTags = new Set(['map', 'seq', 'str', 'null', 'bool', 'int', 'float'])

/** Reads YAML as kubectl does, version 1.1; throws, without any words of the text, if it is not sound. */
export async function parseYamlOutput(text: string): Promise<unknown> {
  const library = await import('yaml')
  const tokens = [...guardedTokens(library, text)]
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
  const [document] = documents
  if (documents.length > 1) throw new YamlUnsound('has more than one document')
  if (document?.errors.length) throw new YamlUnsound('is neither JSON nor YAML')
  const value: unknown = document?.toJS({ maxAliasCount: 0 }) ?? null
  return value
}

/** A YAML text that is not read further; the message follows "its output". */
export class YamlUnsound extends Error {}

function* guardedTokens(library: typeof yaml, text: string): Generator<CST.Token> {
  const parser: Parser = new library.Parser()
  let count = 0
  for (const lexeme of new library.Lexer().lex(text)) {
    count++
    if (lexeme.startsWith('*')) throw new YamlUnsound('has YAML aliases, which no credential needs')
    yield* parser.next(lexeme)
    if (parser.stack.length > maxDepth) throw new YamlUnsound('is nested too deeply')
    if (count > maxTokens) throw new YamlUnsound('is too long a YAML text')
  }
  yield* parser.end()
}
