import { badRequest, parseYaml, type Work, YamlError } from '../../core/index.ts'
import { type ParsedJson, parseJsonText, utf8Text } from './json.ts'
import { maxWork, maxYamlAliases, maxYamlDepth } from './limits.ts'

/** A YAML body, as JSON. */
export interface YamlBody extends ParsedJson {
  /** One sentence per key that a mapping has twice; the last one counts. */
  readonly duplicates: readonly string[]
}

/** Parses the bytes of a YAML body with one document. */
export async function parseYamlBody(
  bytes: Uint8Array,
  work: Work = maxWork(),
  maxDepth?: number,
): Promise<YamlBody> {
  work.spend('yamlBytes', bytes.length)
  const text = utf8Text(bytes)
  const { value, duplicates } = await parseYaml(text, {
    duplicateKeys: 'last',
    limits: {
      maxTokens: Number.POSITIVE_INFINITY,
      maxDepth: maxYamlDepth,
      maxAliases: maxYamlAliases,
      maxExpandedSize: 2 * text.length + 1024,
    },
    onToken: () => work.spend('yamlTokens', 1),
  }).catch((error: unknown) => {
    throw error instanceof YamlError ? badRequest(`yaml: ${messageOf(error)}`) : error
  })
  return {
    ...parseJsonText(JSON.stringify(value), work, maxDepth),
    duplicates: duplicates.map(
      ({ key, line }) => `line ${line}: key ${JSON.stringify(key)} already set in map`,
    ),
  }
}

/** The body is the client's own: the message may quote it. */
function messageOf({ problem, line, detail }: YamlError): string {
  if (problem === 'syntax') return `line ${line}: ${detail}`
  if (problem === 'multiple-documents') return 'the body has more than one document'
  return problem === 'too-deep' ? 'exceeded max depth' : detail
}
