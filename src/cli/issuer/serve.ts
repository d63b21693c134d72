import {
  CommandFailed,
  type Logger,
  type OptionTable,
  type OptionValues,
  systemClock,
  systemErrorCode,
  WrongUsage,
} from '../../core/index.ts'
import type { ServingCertificate } from '../../pki/index.ts'
import { outputOption } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { createLogger } from '../logger.ts'
import { issuerSourceOptions, openIssuerSource } from './source.ts'

const options = {
  'bind-address': {
    type: 'string',
    default: '127.0.0.1',
    describe: 'address to listen on',
    group: 'Serving',
    placeholder: 'ADDRESS',
  },
  port: {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: 8_443,
    describe: 'port to listen on; 0 takes a free one',
    group: 'Serving',
  },
  'tls-cert-file': {
    type: 'path',
    describe:
      'certificate, PEM, read again when it changes; without one HTTP is spoken, for a proxy in front that has one',
    group: 'Serving',
    placeholder: 'FILE',
  },
  'tls-private-key-file': {
    type: 'path',
    describe: 'key of the certificate, PEM',
    group: 'Serving',
    placeholder: 'FILE',
  },
  interval: {
    type: 'duration',
    min: 1_000,
    default: 60_000,
    describe: 'how often to look for new keys',
    group: 'Serving',
  },
  ...issuerSourceOptions,
  ...outputOption,
} as const satisfies OptionTable

interface ServingParts {
  readonly io: Io
  readonly log: Logger
  readonly certificate: ServingCertificate | undefined
}

/** The certificate of the files, if they were named; it follows them. */
async function openCertificate(
  certFile: string | undefined,
  keyFile: string | undefined,
  log: Logger,
): Promise<ServingCertificate | undefined> {
  if (certFile === undefined && keyFile === undefined) return undefined
  if (certFile === undefined || keyFile === undefined)
    throw new WrongUsage('--tls-cert-file and --tls-private-key-file go together')
  const { openServingCertificate } = await import('../../pki/index.ts')
  return openServingCertificate({ certFile, keyFile, clock: systemClock, log })
}

/** `sallyport issuer serve`. */
export const issuerServeCommand = defineCommand({
  command: 'sallyport issuer serve',
  summary: 'Serve discovery document and key set, and nothing else, to everybody',
  options,
  examples: [
    {
      line: 'sallyport issuer serve --bind-address 0.0.0.0 --tls-cert-file c.pem --tls-private-key-file k.pem',
      does: 'a public face of the issuer; the API server stays private',
    },
    {
      line: 'sallyport issuer serve --from ~/.kube/config',
      does: 'those of any cluster, on http://127.0.0.1:8443',
    },
  ],
  run: async ({ options: values }, io) => {
    const log = createLogger({
      level: 'info',
      format: 'text',
      clock: systemClock,
      write: (line) => io.stderr(line),
    })
    const certificate = await openCertificate(values.tlsCertFile, values.tlsPrivateKeyFile, log)
    try {
      await serve(values, { io, log, certificate })
    } finally {
      certificate?.close()
    }
  },
})

async function serve(
  values: OptionValues<typeof options>,
  { io, log, certificate }: ServingParts,
): Promise<void> {
  const { DocumentServer, followDocuments } = await import('../../issuer/publish/index.ts')
  const read = await openIssuerSource(values, io)
  const first = await read(io.drain)
  const { bindAddress: address, port, interval: everyMs } = values
  const tls = certificate && { tls: certificate.current }
  const listener = new DocumentServer(first, { address, port, ...tls })
  certificate?.onNew((next) => listener.useCertificate(next))
  const url = await listener.listen().catch((cause: unknown) => {
    const why = systemErrorCode(cause) ?? 'unknown error'
    const place = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
    throw new CommandFailed('CANNOT_LISTEN', `cannot listen on ${place}: ${why}`, { cause })
  })
  io.stdout(
    values.output === 'json'
      ? `${JSON.stringify({ url, issuer: first.issuer })}\n`
      : `${first.issuer} is served on ${url}\n`,
  )
  await followDocuments({ read, everyMs, log, onRead: (found) => listener.update(found) }, io.drain)
  await listener.close()
}
