import {
  type Cluster,
  type Context,
  type Kubeconfig,
  KubeconfigInvalid,
  type KubeconfigUser,
} from './kubeconfig.ts'
import { problemsOfCluster, problemsOfUser } from './validate.ts'

/** Everything that a context stands for. */
export interface ResolvedContext {
  readonly contextName: string
  readonly clusterName: string
  readonly cluster: Cluster
  /** Empty for a context that names nobody. */
  readonly userName: string
  readonly user: KubeconfigUser
  /** The file that has the user's entry, if it is known; new tokens are written there. */
  readonly userFile?: string
  /** The file that has the cluster's entry, if it is known; a new location is written there. */
  readonly clusterFile?: string
  readonly namespace: string
}

/** Finds a context (the current one if no name is given) and checks that it can be used. */
export function resolveContext(config: Kubeconfig, name?: string): ResolvedContext {
  const contextName = name ?? config.currentContext
  const context = findContext(config, contextName)
  const cluster = config.clusters.get(context.cluster)
  const user = context.user === '' ? {} : config.users.get(context.user)
  const problems = [
    ...(cluster ? problemsOfCluster(context.cluster, cluster) : [missingCluster(context)]),
    ...(user ? problemsOfUser(context.user, user) : [`user ${quote(context.user)} does not exist`]),
  ]
  if (!cluster || !user || problems.length > 0) {
    throw new KubeconfigInvalid(`context ${quote(contextName)}`, problems)
  }
  return {
    contextName,
    clusterName: context.cluster,
    cluster,
    userName: context.user,
    user,
    namespace: context.namespace ?? 'default',
  }
}

function findContext(config: Kubeconfig, name: string): Context {
  if (name === '') {
    throw new KubeconfigInvalid('the kubeconfig', [
      'no context is chosen: name one, or set current-context',
    ])
  }
  const context = config.contexts.get(name)
  if (context) return context
  const names = [...config.contexts.keys()].map(quote).join(', ')
  throw new KubeconfigInvalid('the kubeconfig', [
    names
      ? `context ${quote(name)} does not exist; those that do: ${names}`
      : `context ${quote(name)} does not exist, nor does any other`,
  ])
}

const missingCluster = ({ cluster }: Context): string =>
  cluster === '' ? 'it names no cluster' : `cluster ${quote(cluster)} does not exist`

const quote = (name: string): string => JSON.stringify(name)
