import {
  ApiError,
  CommandFailed,
  hasReason,
  type OptionTable,
  WrongUsage,
} from '../../core/index.ts'
import type { PublishOptions, ReadDocuments } from '../../issuer/publish/index.ts'
import { readCaFile } from '../ca-file.ts'
import { dataDirectory, dataDirectoryOption, pluginHostOf } from '../cluster-source.ts'
import type { Io } from '../io.ts'

/** Where the documents of an issuer come from. */
export const issuerSourceOptions = {
  from: {
    type: 'string',
    describe: 'issuer (an https URL) or kubeconfig of any Kubernetes cluster to read from',
    group: 'Source',
    placeholder: 'URL|FILE',
    defaultText: 'the server of --data-dir',
  },
  context: {
    type: 'string',
    describe: 'context of that kubeconfig',
    group: 'Source',
    placeholder: 'NAME',
    defaultText: 'the current one',
  },
  'certificate-authority': {
    type: 'path',
    describe: 'CA of the URL, PEM, if it is not one that everybody knows',
    group: 'Source',
    placeholder: 'FILE',
  },
  'jwks-uri': {
    type: 'string',
    describe: 'where outsiders find the key set; goes into the discovery document',
    group: 'Source',
    placeholder: 'URL',
    defaultText: 'as the source says',
    check: (text) =>
      URL.canParse(text) && new URL(text).protocol === 'https:'
        ? undefined
        : 'must be an https URL',
  },
  ...dataDirectoryOption,
} as const satisfies OptionTable

/** The values of those options. */
export interface IssuerSourceValues {
  readonly from?: string | undefined
  readonly context?: string | undefined
  readonly certificateAuthority?: string | undefined
  readonly jwksUri?: string | undefined
  readonly dataDir?: string | undefined
}

/** Opens the source that the options name. */
export async function openIssuerSource(values: IssuerSourceValues, io: Io): Promise<ReadDocuments> {
  const { from, certificateAuthority } = values
  const options: PublishOptions = { jwksUri: values.jwksUri }
  const { documentsOfIssuer, documentsOfServer } = await import('../../issuer/publish/index.ts')
  const isUrl = from?.includes('://')
  if (!isUrl && certificateAuthority !== undefined)
    throw new WrongUsage('--certificate-authority goes with --from URL')
  if (from === undefined || !isUrl)
    return withHint(documentsOfServer(await transportOf(values, io), options))
  if (!from.startsWith('https://')) throw new WrongUsage('--from must be an https URL')
  return documentsOfIssuer(from, await readCaFile(certificateAuthority), options)
}

const withHint =
  (read: ReadDocuments): ReadDocuments =>
  async (signal) =>
    read(signal).catch((error: unknown) => {
      if (!(error instanceof ApiError) || !hasReason(error, 'Forbidden')) throw error
      throw new CommandFailed(error.code, error.message, {
        hint: 'bind this user to the ClusterRole system:service-account-issuer-discovery, or use the kubeconfig of another',
        cause: error,
      })
    })

async function transportOf({ from, context, dataDir }: IssuerSourceValues, io: Io) {
  const { transportFromKubeconfig } = await import('../../client/index.ts')
  const { loadContext } = await import('../../kubeconfig/index.ts')
  const explicitPath = from ?? dataDirectory(dataDir, io).adminKubeconfig
  const sources = { explicitPath, kubeconfig: undefined, home: io.homeDirectory }
  const found = await loadContext(sources, context)
  return transportFromKubeconfig(found, { plugins: await pluginHostOf(io), proxyEnv: io.env })
}
