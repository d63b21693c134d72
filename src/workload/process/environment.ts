import { CommandFailed } from '../../core/index.ts'
import type { WorkloadPlan } from '../pod/workload-plan.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** What every workload is told of itself; the kubeconfig of the machine is not for it. */
export function workloadEnvironment(
  env: Environment,
  plan: WorkloadPlan,
  directory: string,
): Record<string, string | undefined> {
  const { KUBECONFIG: _, SALLYPORT_KUBECONFIG: _ours, ...others } = env
  const [first] = plan.ports
  return {
    ...others,
    HOSTNAME: plan.name,
    POD_NAME: plan.name,
    POD_NAMESPACE: plan.namespace,
    POD_IP: plan.ip,
    POD_SERVICE_ACCOUNT: plan.serviceAccount,
    SALLYPORT_SERVICE_ACCOUNT_DIR: directory,
    ...(first && { PORT: String(first.port) }),
  }
}

/** What in-cluster clients look for, as the kubelet writes it for the Service `kubernetes`. */
export function inClusterEnvironment(server: URL): Record<string, string> {
  if (server.pathname !== '/' || server.protocol !== 'https:')
    throw new CommandFailed(
      'SERVER_NOT_IN_CLUSTER',
      `in-cluster clients know the API by host and port alone, and ${server.href} is more than that`,
      { hint: 'use a kubeconfig that names an https server without a path, or --no-in-cluster' },
    )
  const host = server.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = server.port || '443'
  const address = `tcp://${server.hostname}:${port}`
  const tcp = `KUBERNETES_PORT_${port}_TCP`
  return {
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
    KUBERNETES_SERVICE_PORT_HTTPS: port,
    KUBERNETES_PORT: address,
    [tcp]: address,
    [`${tcp}_PROTO`]: 'tcp',
    [`${tcp}_PORT`]: port,
    [`${tcp}_ADDR`]: host,
  }
}
