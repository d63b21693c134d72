import { readFile, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import {
  type ClusterView,
  CommandFailed,
  isRecord,
  type KubeObject,
  systemErrorCode,
  wellKnownKinds,
} from '../../core/index.ts'

/** The add-ons that come with this package, by their directories. */
const packagedAddons = { whoami: 'examples/whoami-addon' } as const

/** The name of one of them. */
export type AddonName = keyof typeof packagedAddons

/** What an add-on is made of. */
export interface PackagedAddon {
  readonly name: AddonName
  /** Of its Service and its service account. */
  readonly namespace: string
  readonly objects: readonly KubeObject[]
  /** The file that Node.js runs. */
  readonly program: string
}

/** Reads an add-on of this package: its objects and where its program lies. */
export async function readPackagedAddon(name: AddonName): Promise<PackagedAddon> {
  const directory = await directoryOf(name)
  const { parseAllDocuments } = await import('yaml')
  const text = await readFile(new URL(`${name}.yaml`, directory), 'utf8')
  const objects = parseAllDocuments(text).flatMap((document) => {
    const object: unknown = document.toJS()
    return isKubeObject(object) ? [object] : []
  })
  const service = objects.find(({ kind }) => kind === 'Service')
  const namespace = service?.metadata.namespace
  if (namespace === undefined) throw new Error(`the files of the add-on ${name} name no Service`)
  return { name, namespace, objects, program: fileURLToPath(new URL('server.js', directory)) }
}

const isKubeObject = (value: unknown): value is KubeObject =>
  isRecord(value) && typeof value['kind'] === 'string' && isRecord(value['metadata'])

/** From here upwards, because this file runs from different depths of the package. */
async function directoryOf(name: AddonName): Promise<URL> {
  for (
    let at = new URL('../addons', import.meta.url);
    at.pathname !== '/';
    at = new URL('..', at)
  ) {
    const directory = new URL(`${packagedAddons[name]}/`, at)
    if (await isThere(new URL('server.js', directory))) return directory
  }
  throw new CommandFailed('NO_ADDON', `the files of the add-on ${name} are not in this package`, {
    hint: 'install sallyport again, or run without --with',
  })
}

async function isThere(file: URL): Promise<boolean> {
  try {
    return (await stat(file)).isFile()
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false
    throw error
  }
}

/** Rejects while a Service has no endpoint that is ready: asking its page then would be told of as a failure. */
export async function requireEndpoint(
  view: ClusterView,
  { namespace, service }: { readonly namespace: string; readonly service: string },
  signal: AbortSignal,
): Promise<void> {
  const query = { namespace, labelSelector: `kubernetes.io/service-name=${service}` }
  const { items } = await view.list(wellKnownKinds.endpointSlice, query, signal)
  const endpoints = items.flatMap((slice): unknown[] =>
    Array.isArray(slice['endpoints']) ? slice['endpoints'] : [],
  )
  if (!endpoints.some(isReady)) throw new Error(`the Service ${service} has no endpoint yet`)
}

const isReady = (endpoint: unknown): boolean => {
  const conditions = isRecord(endpoint) ? endpoint['conditions'] : undefined
  return isRecord(conditions) && conditions['ready'] === true
}
