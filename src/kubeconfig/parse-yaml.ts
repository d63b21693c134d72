import { KubeconfigInvalid } from './kubeconfig-invalid.ts'

const notInKubectl = /(int|float):?time|timestamp|binary|omap|pairs|set/i

/**
 * Reads YAML (or JSON) as kubectl does: version 1.1, no key twice. Messages name the place but never
 * quote the text, in which there are credentials.
 */
export async function parseYaml(text: string, path: string): Promise<unknown> {
  const { LineCounter, parseDocument } = await import('yaml')
  const lineCounter = new LineCounter()
  const document = parseDocument(text.replace(/^\uFEFF/, ''), {
    version: '1.1',
    prettyErrors: false,
    lineCounter,
    // The types of 1.1 that Go's reader does not know; with them `12:30` would be a number.
    customTags: (tags) =>
      tags.filter((tag) => typeof tag === 'string' || !notInKubectl.test(tag.format ?? tag.tag)),
  })
  if (document.errors.length > 0) {
    const problems = document.errors.map(({ code, pos }) => {
      const { line, col } = lineCounter.linePos(pos[0])
      return `line ${line}, column ${col} is not valid YAML: ${code.toLowerCase().replaceAll('_', ' ')}`
    })
    throw new KubeconfigInvalid(path, problems)
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 })
    return value
  } catch {
    throw new KubeconfigInvalid(path, ['the aliases in it cannot be resolved'])
  }
}
