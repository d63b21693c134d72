import { isRecord, SallyportError } from '../../core/index.ts'
import { execInfoVariable, isKnownVersion, knownVersions, v1alpha1 } from '../exec/plugin.ts'

/** What the caller told the plugin cannot be used; the message says what to change. */
export class ExecInfoInvalid extends SallyportError {
  readonly code = 'EXEC_INFO_INVALID'
}

/** The cluster that a credential is wanted for. */
export interface ExecInfoCluster {
  readonly server: string
  readonly tlsServerName?: string
  readonly insecureSkipTlsVerify?: boolean
  /** PEM text. */
  readonly certificateAuthorityData?: string
  readonly proxyUrl?: string
  readonly disableCompression?: boolean
  /** What the kubeconfig has for this plugin, in the cluster's extension `client.authentication.k8s.io/exec`. */
  readonly config?: unknown
}

/** What is asked of a plugin. */
export interface ExecInfo {
  /** The version to answer in. */
  readonly apiVersion: string
  /** `seed` if the caller speaks the flat objects of the first proposal. */
  readonly dialect: 'shipped' | 'seed'
  /** Whether stdin is the user's terminal. */
  readonly interactive: boolean
  /** Only if the kubeconfig has `provideClusterInfo: true`. */
  readonly cluster?: ExecInfoCluster
  /** The answer that refused the last credential; v1alpha1 alone tells it. */
  readonly response?: {
    readonly code?: number
    readonly header: Readonly<Record<string, readonly string[]>>
  }
}

type Fields = Readonly<Record<string, unknown>>

/** Reads what is asked of the plugin out of its environment (`process.env`). */
export function readExecInfo(env: Readonly<Record<string, string | undefined>>): ExecInfo {
  const object = parse(env[execInfoVariable])
  const { kind, apiVersion } = object
  const isFlat = kind === 'ExecInfo' && apiVersion === v1alpha1
  if (kind !== 'ExecCredential' && !isFlat) {
    throw new ExecInfoInvalid(`${execInfoVariable} has a kind other than ExecCredential`)
  }
  if (typeof apiVersion !== 'string' || !isKnownVersion(apiVersion)) {
    throw new ExecInfoInvalid(
      `${execInfoVariable} has an apiVersion that is none of ${knownVersions}`,
    )
  }
  const spec = isFlat ? object : record(object['spec'])
  const { cluster, response } = spec
  return {
    apiVersion,
    dialect: isFlat ? 'seed' : 'shipped',
    interactive: spec['interactive'] === true,
    ...(isRecord(cluster) && { cluster: readCluster(cluster) }),
    ...(isRecord(response) && { response: readResponse(response) }),
  }
}

/** The cluster, for plugins that cannot do without it. */
export function requireCluster({ cluster }: ExecInfo): ExecInfoCluster {
  if (cluster) return cluster
  throw new ExecInfoInvalid(
    'this plugin needs to know the cluster: set provideClusterInfo: true in the exec section of the kubeconfig',
  )
}

function parse(text: string | undefined): Fields {
  if (!text) {
    throw new ExecInfoInvalid(
      `${execInfoVariable} is not set: this program is run by Kubernetes clients, by way of a kubeconfig's exec section`,
    )
  }
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch {
    // The engine's message would quote the text.
  }
  throw new ExecInfoInvalid(`${execInfoVariable} is not a JSON object`)
}

const record = (value: unknown): Fields => (isRecord(value) ? value : {})

function readCluster(fields: Fields): ExecInfoCluster {
  const text = (name: string): string | undefined => {
    const value = fields[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const server = text('server')
  if (server === undefined)
    throw new ExecInfoInvalid(`${execInfoVariable} has a cluster without a server`)
  const authority = text('certificate-authority-data')
  const entries = {
    tlsServerName: text('tls-server-name'),
    insecureSkipTlsVerify: fields['insecure-skip-tls-verify'] === true || undefined,
    certificateAuthorityData: authority && Buffer.from(authority, 'base64').toString('utf8'),
    proxyUrl: text('proxy-url'),
    disableCompression: fields['disable-compression'] === true || undefined,
    config: fields['config'] ?? undefined,
  }
  const kept = Object.entries(entries).filter(([, value]) => value !== undefined)
  return { server, ...(Object.fromEntries(kept) as Omit<ExecInfoCluster, 'server'>) }
}

function readResponse({ code, header }: Fields): NonNullable<ExecInfo['response']> {
  const lists = Object.entries(record(header)).map(([name, values]) => [
    name,
    Array.isArray(values) ? values.filter((value) => typeof value === 'string') : [],
  ])
  return {
    ...(typeof code === 'number' && { code }),
    header: Object.fromEntries(lists) as Readonly<Record<string, readonly string[]>>,
  }
}
