import { FieldReader, present } from './field-reader.ts'
import type { Cluster, Context, Kubeconfig } from './kubeconfig.ts'
import { KubeconfigInvalid } from './kubeconfig-invalid.ts'
import { parseYaml } from './parse-yaml.ts'
import { readExtensions } from './read-extensions.ts'
import { readUser } from './read-user.ts'

/** Reads a kubeconfig; `path` is for messages. Throws KubeconfigInvalid with every problem at once. */
export async function parseKubeconfig(text: string, path: string): Promise<Kubeconfig> {
  const value = await parseYaml(text, path)
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
