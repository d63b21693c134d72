import type { X509Certificate } from 'node:crypto'
import {
  type Cluster,
  type Kubeconfig,
  KubeconfigInvalid,
  parseKubeconfig,
  problemOfLocation,
} from '../../kubeconfig/index.ts'
import { PemInvalid, parseCertificates, renderCertificates } from '../../pki/trust/index.ts'
import { DiscoveryFailed } from './errors.ts'

/** Where a document came from, and what that allows. */
export interface DocumentOrigin {
  /** For messages, for example a path. */
  readonly where: string
  /** Reads the CA that a local file names by its path; from anywhere else such a path means nothing. */
  readonly readCa?: (path: string) => Promise<string>
}

/** What a document says: how the cluster is reached, and whom to trust. */
export interface LocationDocument {
  readonly cluster: Cluster
  /** Empty if the roots of this system are to be trusted. */
  readonly roots: readonly X509Certificate[]
  /** What was let pass but should not be there. */
  readonly warnings: readonly string[]
}

/** Reads the kubeconfig that locates a cluster; one that holds more than that, or a secret, is refused. */
export async function readLocationDocument(
  text: string,
  origin: DocumentOrigin,
): Promise<LocationDocument> {
  const config = await parsed(text, origin.where)
  const [entry] = config.clusters
  const problems = [...problemsOfConfig(config), ...(entry ? problemsOf(entry[1], origin) : [])]
  if (problems.length > 0 || !entry) throw invalid(origin.where, problems)
  const [name, given] = entry
  const cluster = await withEmbeddedCa(given, origin)
  const roots = rootsOf(cluster, origin.where)
  return {
    cluster: onlyLocation(cluster, roots),
    roots,
    warnings: [
      ...(name === ''
        ? []
        : [`${origin.where}: the cluster has the name ${JSON.stringify(name)}, which is not used`]),
      ...Object.keys({ ...given.unknown, ...unknownOf(config) }).map(
        (field) => `${origin.where}: the field ${JSON.stringify(field)} is not known and not used`,
      ),
    ],
  }
}

async function parsed(text: string, where: string): Promise<Kubeconfig> {
  if (text.trim() === '') throw invalid(where, ['there is nothing in it'])
  try {
    return await parseKubeconfig(text, where)
  } catch (error) {
    if (error instanceof KubeconfigInvalid) throw invalid(where, error.problems, error)
    throw error
  }
}

function problemsOfConfig({ clusters, users, contexts }: Kubeconfig): string[] {
  return [
    ...(clusters.size === 1 ? [] : [`it must have one cluster, and has ${clusters.size}`]),
    ...(users.size === 0 ? [] : ['it has users, whose credentials must not be handed around']),
    ...(contexts.size === 0 ? [] : ['it has contexts, which belong to users']),
  ]
}

/** Fields of users; a document with one of them in the wrong place is as dangerous to hand around. */
const credentials =
  /token|password|username|client-(certificate|key)|^exec$|auth-provider|tokenFile/i

function problemsOf(cluster: Cluster, { readCa }: DocumentOrigin): string[] {
  const { certificateAuthority: path, certificateAuthorityData: data } = cluster
  const secrets = Object.keys(cluster.unknown ?? {}).filter((name) => credentials.test(name))
  // Whoever took it over could not read their own kubeconfig again.
  const location = problemOfLocation(cluster)
  return [
    ...problemsOfServer(cluster.server),
    ...(location === undefined ? [] : [location]),
    ...(cluster.insecureSkipTlsVerify
      ? ['insecure-skip-tls-verify is set, so that nothing could be trusted']
      : []),
    ...(path !== undefined && !readCa
      ? ['certificate-authority names a file of another machine: the CA must be embedded']
      : []),
    ...(path !== undefined && data !== undefined
      ? ['certificate-authority and certificate-authority-data are both there: keep one']
      : []),
    ...(cluster.proxyUrl !== undefined && hasUser(cluster.proxyUrl)
      ? ['proxy-url is no URL or has a user or password in it']
      : []),
    ...secrets.map((name) => `the field ${JSON.stringify(name)} is a credential`),
  ]
}

function problemsOfServer(server: string): string[] {
  if (server === '') return ['the cluster has no server']
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (url?.protocol !== 'https:') return ['server must be an https URL']
  if (hasUser(server) || url.hash !== '' || url.search !== '' || /[#?]/.test(server))
    return ['server must have no user, password, query or fragment']
  return []
}

function hasUser(text: string): boolean {
  if (!URL.canParse(text)) return true
  const { username, password } = new URL(text)
  return username !== '' || password !== ''
}

async function withEmbeddedCa(cluster: Cluster, origin: DocumentOrigin): Promise<Cluster> {
  const { certificateAuthority: path, ...others } = cluster
  if (path === undefined || !origin.readCa) return cluster
  return { ...others, certificateAuthorityData: await origin.readCa(path) }
}

function rootsOf({ certificateAuthorityData: pem }: Cluster, where: string): X509Certificate[] {
  if (pem === undefined) return []
  try {
    return parseCertificates(pem)
  } catch (error) {
    if (error instanceof PemInvalid) throw invalid(where, [`its CA: ${error.message}`], error)
    throw error
  }
}

/** With the roots written anew, so that those which are checked are those which are trusted. */
function onlyLocation(cluster: Cluster, roots: readonly X509Certificate[]): Cluster {
  const { unknown: _, insecureSkipTlsVerify: _no, ...location } = cluster
  const rootsPem = renderCertificates(roots)
  return rootsPem === undefined ? location : { ...location, certificateAuthorityData: rootsPem }
}

/** Old kubeconfigs have empty preferences, which are nothing. */
function unknownOf({ unknown = {} }: Kubeconfig): Record<string, unknown> {
  const { preferences: _, ...others } = unknown
  return others
}

const invalid = (where: string, problems: readonly string[], cause?: unknown): DiscoveryFailed =>
  new DiscoveryFailed(
    'document-invalid',
    `${where} does not locate a cluster: ${problems.join('; ')}`,
    {
      hint: 'it must be a kubeconfig with one unnamed cluster, its https address and its CA: `kubectl get configmap -n kube-public cluster-info -o jsonpath={.data.kubeconfig}` prints one',
      cause,
    },
  )
