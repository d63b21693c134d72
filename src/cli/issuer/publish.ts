import { CommandFailed, type OptionTable, systemClock, systemErrorCode } from '../../core/index.ts'
import type { PublicDocuments } from '../../issuer/publish/index.ts'
import { outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import { createLogger } from '../logger.ts'
import { issuerSourceOptions, openIssuerSource } from './source.ts'

const options = {
  out: {
    type: 'path',
    required: true,
    describe: 'directory that a static host serves at the address of the issuer',
    group: 'Publishing',
    placeholder: 'DIR',
  },
  watch: {
    type: 'boolean',
    default: false,
    describe: 'keep the files current until told to end',
    group: 'Publishing',
  },
  interval: {
    type: 'duration',
    min: 1_000,
    default: 60_000,
    describe: 'how often --watch looks; a new key is shown for an hour and a half before it signs',
    group: 'Publishing',
  },
  ...issuerSourceOptions,
  ...outputOption,
} as const satisfies OptionTable

/** What outsiders would run into, as far as the documents themselves tell. */
function doubtsOf({ issuer, jwksUri }: PublicDocuments): string[] {
  const below = `${issuer.replace(/\/$/, '')}/`
  return [
    ...(issuer.startsWith('https://')
      ? []
      : [`outsiders cannot discover the issuer ${issuer}: it is not an https URL`]),
    ...(jwksUri.startsWith(below)
      ? []
      : [
          `the key set is expected at ${jwksUri}, which is not below the issuer: make sure that outsiders reach it, or give --jwks-uri ${below}openid/v1/jwks`,
        ]),
  ]
}

/** `sallyport issuer publish`. */
export const issuerPublishCommand = defineCommand({
  command: 'sallyport issuer publish',
  summary:
    'Write discovery document and key set as files, for relying parties that cannot reach the server',
  options,
  examples: [
    {
      line: 'sallyport issuer publish --out ./public',
      does: 'both documents and a manifest of types and headers',
    },
    {
      line: 'sallyport issuer publish --out ./public --from ~/.kube/config --watch',
      does: 'those of any cluster, kept current',
    },
  ],
  run: async ({ options: values }, io) => {
    const { followDocuments, writeDocuments } = await import('../../issuer/publish/index.ts')
    const read = await openIssuerSource(values, io)
    const write = async (documents: PublicDocuments): Promise<void> => {
      const files = await writeDocuments(values.out, documents).catch((cause: unknown) => {
        const why = systemErrorCode(cause) ?? 'unknown error'
        throw new CommandFailed('CANNOT_WRITE', `cannot write to ${values.out}: ${why}`, { cause })
      })
      if (files.length === 0 && values.watch) return
      const { issuer } = documents
      io.stdout(
        values.output === 'json'
          ? `${JSON.stringify({ issuer, out: values.out, files })}\n`
          : `${issuer}: ${files.length > 0 ? `wrote ${files.join(', ')}` : 'nothing has changed'}\n`,
      )
    }
    const first = await read(io.drain)
    for (const doubt of doubtsOf(first)) io.stderr(`warning: ${doubt}\n`)
    await write(first)
    if (!values.watch) return
    const log = createLogger({
      level: 'info',
      format: 'text',
      clock: systemClock,
      write: (line) => io.stderr(line),
    })
    await followDocuments({ read, everyMs: values.interval, log, onRead: write }, io.drain)
  },
})
