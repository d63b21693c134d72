import { isRecord, readFileIfPresent } from '../core/index.ts'
import { outputOption } from './cluster-source.ts'
import { defineCommand } from './command.ts'

async function manifestAt(file: URL): Promise<unknown> {
  const text = await readFileIfPresent(file)
  return text === undefined ? undefined : JSON.parse(text)
}

/** The version of this package, from the nearest manifest above this file that is ours. */
export async function packageVersion(): Promise<string> {
  for (let at = new URL('./', import.meta.url); at.pathname !== '/'; at = new URL('..', at)) {
    const manifest = await manifestAt(new URL('package.json', at))
    if (isRecord(manifest) && manifest['name'] === 'sallyport') return String(manifest['version'])
  }
  return 'unknown'
}

/** `sallyport version`. */
export const versionCommand = defineCommand({
  command: 'sallyport version',
  summary: 'Print the version of this program',
  options: outputOption,
  examples: [{ line: 'sallyport version', does: 'prints one line' }],
  run: async ({ options }, io) => {
    const version = await packageVersion()
    io.stdout(options.output === 'json' ? `${JSON.stringify({ version })}\n` : `${version}\n`)
  },
})
