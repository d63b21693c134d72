import { parseYaml, Secret, YamlError, type YamlLimits } from '../core/index.ts'
import { FieldReader, present } from './field-reader.ts'
import {
  type AuthProviderConfig,
  type Cluster,
  type Context,
  type ExecConfig,
  type Extensions,
  type Impersonation,
  type Kubeconfig,
  KubeconfigInvalid,
  type KubeconfigUser,
} from './kubeconfig.ts'

/** The `extensions` list of an entry, by name. */
export function readExtensions(reader: FieldReader): Extensions | undefined {
  const items = reader.list('extensions')
  if (items.length === 0) return undefined
  const extensions = new Map<string, unknown>()
  for (const item of items) {
    const name = item.string('name') ?? ''
    if (extensions.has(name)) item.note('name', `${JSON.stringify(name)} is there twice`)
    extensions.set(name, item.raw('extension'))
  }
  return extensions
}

/** Reads a `user` entry. */
export function readUser(reader: FieldReader): KubeconfigUser {
  const keyData = reader.base64Text('client-key-data')
  return {
    ...present({
      clientCertificate: reader.filled('client-certificate'),
      clientCertificateData: reader.base64Text('client-certificate-data'),
      clientKey: reader.filled('client-key'),
      clientKeyData: keyData === undefined ? undefined : new Secret(keyData),
      token: reader.secret('token'),
      tokenFile: reader.filled('tokenFile'),
      username: reader.filled('username'),
      password: reader.secret('password'),
      impersonate: readImpersonation(reader),
      authProvider: readAuthProvider(reader.map('auth-provider')),
      exec: readExec(reader.map('exec')),
      extensions: readExtensions(reader),
    }),
    ...reader.rest(),
  }
}

function readImpersonation(reader: FieldReader): Impersonation | undefined {
  const impersonation = present({
    username: reader.filled('as'),
    uid: reader.filled('as-uid'),
    groups: reader.strings('as-groups'),
    extra: readExtra(reader.map('as-user-extra')),
  })
  return Object.keys(impersonation).length > 0 ? impersonation : undefined
}

function readExtra(
  reader: FieldReader | undefined,
): Readonly<Record<string, readonly string[]>> | undefined {
  if (!reader) return undefined
  return Object.fromEntries(reader.names().map((name) => [name, reader.strings(name) ?? []]))
}

function readAuthProvider(reader: FieldReader | undefined): AuthProviderConfig | undefined {
  if (!reader) return undefined
  const config = reader.map('config')
  const secrets = config
    ?.names()
    .map((name) => [name, new Secret(config.string(name) ?? '')] as const)
  return {
    name: reader.string('name') ?? '',
    ...present({ config: secrets && Object.fromEntries(secrets) }),
    ...reader.rest(),
  }
}

function readExec(reader: FieldReader | undefined): ExecConfig | undefined {
  if (!reader) return undefined
  const env = reader.list('env').map((item) => ({
    name: item.string('name') ?? '',
    value: new Secret(item.string('value') ?? ''),
  }))
  return {
    command: reader.string('command') ?? '',
    apiVersion: reader.string('apiVersion') ?? '',
    ...present({
      args: reader.strings('args'),
      env: env.length > 0 ? env : undefined,
      installHint: reader.filled('installHint'),
      provideClusterInfo: reader.boolean('provideClusterInfo'),
      interactiveMode: reader.filled('interactiveMode'),
    }),
    ...reader.rest(),
  }
}

/** Reads a kubeconfig; `path` is for messages. Throws KubeconfigInvalid with every problem at once. */
export async function parseKubeconfig(text: string, path: string): Promise<Kubeconfig> {
  const value = await parseKubeYaml(text, path)
  const problems: string[] = []
  const config = readKubeconfig(new FieldReader(value, '', problems))
  if (problems.length > 0) throw new KubeconfigInvalid(path, problems)
  return config
}

function readKubeconfig(reader: FieldReader): Kubeconfig {
  const apiVersion = reader.filled('apiVersion') ?? 'v1'
  if (apiVersion !== 'v1') reader.note('apiVersion', 'must be v1')
  const kind = reader.filled('kind') ?? 'Config'
  if (kind !== 'Config') reader.note('kind', 'must be Config: this is not a kubeconfig')
  return {
    currentContext: reader.string('current-context') ?? '',
    clusters: readNamed(reader, 'clusters', 'cluster', readCluster),
    users: readNamed(reader, 'users', 'user', readUser),
    contexts: readNamed(reader, 'contexts', 'context', readContext),
    ...present({ extensions: readExtensions(reader) }),
    ...reader.rest(),
  }
}

function readNamed<T>(
  reader: FieldReader,
  listName: string,
  entryName: string,
  read: (entry: FieldReader) => T,
): ReadonlyMap<string, T> {
  const entries = new Map<string, T>()
  for (const item of reader.list(listName)) {
    const name = item.string('name') ?? ''
    if (entries.has(name)) item.note('name', `${JSON.stringify(name)} is there twice`)
    const entry = item.map(entryName) ?? new FieldReader({}, item.path, item.problems)
    entries.set(name, read(entry))
  }
  return entries
}

function readCluster(reader: FieldReader): Cluster {
  return {
    server: reader.string('server') ?? '',
    ...present({
      tlsServerName: reader.filled('tls-server-name'),
      insecureSkipTlsVerify: reader.boolean('insecure-skip-tls-verify'),
      certificateAuthority: reader.filled('certificate-authority'),
      certificateAuthorityData: reader.base64Text('certificate-authority-data'),
      proxyUrl: reader.filled('proxy-url'),
      disableCompression: reader.boolean('disable-compression'),
      extensions: readExtensions(reader),
    }),
    ...reader.rest(),
  }
}

function readContext(reader: FieldReader): Context {
  return {
    cluster: reader.string('cluster') ?? '',
    user: reader.string('user') ?? '',
    ...present({ namespace: reader.filled('namespace'), extensions: readExtensions(reader) }),
    ...reader.rest(),
  }
}

/** A text may come from a stranger (discovery): none may exhaust the stack or hold the event loop. */
const maxCharacters = 4 * 1024 * 1024
const yamlLimits: YamlLimits = {
  maxTokens: 400_000,
  maxDepth: 100,
  maxAliases: 100,
  maxExpandedSize: 2 * maxCharacters,
}

/** Reads the YAML or JSON of a kubeconfig or kuberc. Messages do not quote the text, which holds credentials. */
export async function parseKubeYaml(text: string, path: string): Promise<unknown> {
  if (text.length > maxCharacters) throw new KubeconfigInvalid(path, ['is too large'])
  try {
    return (await parseYaml(text, { limits: yamlLimits, duplicateKeys: 'error' })).value
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    const { problem, line, column, message } = error
    const place = line === undefined ? '' : `line ${line}, column ${column} is not valid YAML: `
    const what = problem === 'aliases' ? 'has aliases that cannot be resolved' : message
    throw new KubeconfigInvalid(path, [`${place}${what}`])
  }
}
