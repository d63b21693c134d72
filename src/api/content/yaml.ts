import type { Work } from '../../core/index.ts'
import { type ParsedJson, parseJsonText, utf8Text } from './json.ts'
import { maxWork } from './limits.ts'
import { composeYaml, type YamlDocument, type YamlLibrary, yamlProblem } from './yaml-document.ts'

/** What a YAML text says, as JSON. */
export interface ParsedYaml extends ParsedJson {
  /** One sentence per key that a mapping has twice; the last one counts. */
  readonly duplicates: readonly string[]
}

/** As many as Kubernetes reports at most. */
const maxDuplicates = 100

/** Keys that one mapping has more than once. */
function duplicateKeys(library: YamlLibrary, { document, lineOf }: YamlDocument): string[] {
  const found: string[] = []
  if (document === undefined) return found
  library.visit(document, {
    Map(_key, map) {
      const seen = new Set<unknown>()
      for (const { key } of map.items) {
        if (!library.isScalar(key)) continue
        if (seen.has(key.value) && found.length < maxDuplicates)
          found.push(
            `line ${lineOf(key.range?.[0] ?? 0)}: key ${JSON.stringify(key.value)} already set in map`,
          )
        seen.add(key.value)
      }
    },
  })
  return found
}

/** An alias makes one node appear many times: what it would become as text is counted first. */
function checkExpansion(value: unknown, limit: number): void {
  const open: unknown[] = [value]
  let size = 0
  while (open.length > 0) {
    const next = open.pop()
    size += typeof next === 'string' ? next.length : 1
    if (size > limit) throw yamlProblem('document contains excessive aliasing')
    if (typeof next === 'number' && !Number.isFinite(next))
      throw yamlProblem(`unsupported value: ${next}`)
    if (typeof next === 'object' && next !== null)
      for (const inner of Object.values(next)) open.push(inner)
  }
}

/** The library gives up on these in its own way. */
function checkAliases(library: YamlLibrary, { document }: YamlDocument): void {
  if (document === undefined) return
  library.visit(document, {
    Alias(_key, alias) {
      if (alias.resolve(document) === undefined)
        throw yamlProblem(`unknown anchor '${alias.source}' referenced`)
    },
  })
}

/** Parses the bytes of a YAML body with one document. */
export async function parseYaml(
  bytes: Uint8Array,
  work: Work = maxWork(),
  maxDepth?: number,
): Promise<ParsedYaml> {
  work.spend('yamlBytes', bytes.length)
  const text = utf8Text(bytes)
  const library = await import('yaml')
  const composed = composeYaml(library, text, work)
  checkAliases(library, composed)
  const value: unknown = composed.document?.toJS({ maxAliasCount: -1 }) ?? null
  checkExpansion(value, 2 * text.length + 1024)
  const duplicates = duplicateKeys(library, composed)
  return { ...parseJsonText(JSON.stringify(value), work, maxDepth), duplicates }
}
