import { join } from 'node:path'
import { CommandFailed, readFileIfPresent } from '../core/index.ts'
import type { ResolvedContext } from './resolve-context.ts'

/** Where a pod finds its service account. */
export interface InClusterPlace {
  /** The variables of the process, of which KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT count. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly directory?: string
}

const serviceAccountDirectory = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The cluster that this process runs in as a pod, with its service account as the user. */
export async function inClusterContext(place: InClusterPlace): Promise<ResolvedContext> {
  const { env, directory = serviceAccountDirectory } = place
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  if (!host || !port) {
    throw notInCluster('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set')
  }
  const tokenFile = join(directory, 'token')
  const certificateAuthority = join(directory, 'ca.crt')
  for (const path of [tokenFile, certificateAuthority]) {
    if ((await readFileIfPresent(path)) === undefined) throw notInCluster(`${path} does not exist`)
  }
  const namespace = (await readFileIfPresent(join(directory, 'namespace')))?.trim()
  return {
    contextName: 'in-cluster',
    clusterName: 'in-cluster',
    cluster: {
      server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
      certificateAuthority,
    },
    userName: 'service-account',
    user: { tokenFile },
    namespace: namespace || 'default',
  }
}

const notInCluster = (why: string): CommandFailed =>
  new CommandFailed('NOT_IN_CLUSTER', `this process does not run in a cluster: ${why}`, {
    hint: 'in a Pod, see automountServiceAccountToken; elsewhere, give --kubeconfig FILE',
  })
