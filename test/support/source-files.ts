import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const source = join(import.meta.dirname, '../../src')

/** The production files below these folders of `src`, with their text. */
export async function sourceFiles(
  folders: readonly string[],
): Promise<{ readonly path: string; readonly text: string }[]> {
  const paths: string[] = []
  for (const folder of folders)
    for (const entry of await readdir(join(source, folder), { recursive: true }))
      if (entry.endsWith('.ts') && !/\.(?:test|suite|contract|fixture)\.ts$/.test(entry))
        paths.push(join(folder, entry))
  return Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(join(source, path), 'utf8') })),
  )
}
