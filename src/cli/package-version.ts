import { isRecord, readFileIfPresent } from '../core/index.ts'

async function manifestAt(file: URL): Promise<unknown> {
  const text = await readFileIfPresent(file)
  return text === undefined ? undefined : JSON.parse(text)
}

/** The version of this package, from the nearest manifest above this file that is ours. */
export async function packageVersion(): Promise<string> {
  for (let at = new URL('./', import.meta.url); at.pathname !== '/'; at = new URL('../', at)) {
    const manifest = await manifestAt(new URL('package.json', at))
    if (isRecord(manifest) && manifest['name'] === 'sallyport') return String(manifest['version'])
  }
  return 'unknown'
}
