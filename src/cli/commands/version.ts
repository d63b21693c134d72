import { defineCommand } from '../command.ts'
import { packageVersion } from '../package-version.ts'
import { outputOption } from '../shared-options.ts'

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
