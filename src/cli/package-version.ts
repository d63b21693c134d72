import { readFile } from 'node:fs/promises'
import { isRecord, systemErrorCode } from '../core/index.ts'

async function manifestAt(file: URL): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The version of this package, from the nearest manifest above this file that is ours. */
export async function packageVersion(): Promise<string> {
  for (let at = new URL('./', import.meta.url); at.pathname !== '/'; at = new URL('../', at)) {
    const manifest = await manifestAt(new URL('package.json', at))
    if (isRecord(manifest) && manifest['name'] === 'sallyport') return String(manifest['version'])
  }
  return 'unknown'
}
