import { randomBytes } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import { basename } from 'node:path'
import type { KubeClient } from '../client/index.ts'
import { CommandFailed, isRecord, machineNameOf } from '../core/index.ts'
import { placeInService } from './pod/service-place.ts'
import type { WorkloadPlan } from './pod/workload-plan.ts'
import { localAddressTo } from './process/tcp.ts'
import type { WorkloadHost, WorkloadOptions } from './workload-host.ts'

const connectTimeoutMs = 5_000

type PlanHost = Pick<WorkloadHost, 'server' | 'drain'> & {
  readonly client: Pick<KubeClient, 'get'>
}

/** Works out what the Pod of a workload says, and refuses what could not work. */
export async function makePlan(
  machine: string,
  options: WorkloadOptions,
  { client, server, drain }: PlanHost,
): Promise<WorkloadPlan> {
  const { namespace, service, audiences, labels } = options
  const place =
    service === undefined
      ? { labels: {}, ports: options.ports }
      : await placeInService(client, { namespace, name: service }, options.ports, drain)
  const container = dnsLabel(basename(options.command[0]))
  const suffix = randomBytes(3).toString('hex')
  return {
    machine,
    namespace,
    name: options.name ?? `${(service ?? container).slice(0, 56)}-${suffix}`,
    serviceAccount: options.serviceAccount,
    // Those of the Service win: without them it would be no endpoint, and nobody would be told.
    labels: { ...labels, ...place.labels },
    container,
    ip: options.ip ?? (await addressTowards(server, drain)),
    ports: place.ports,
    tokens: [{ file: 'token' }, ...audiences],
    tokenSeconds: Math.floor(options.tokenLifetimeMs / 1_000),
  }
}

/** Workloads are registered under an identity that can do nothing else, so it must be such a one. */
export async function requireMachine(
  client: Pick<KubeClient, 'review'>,
  signal: AbortSignal,
): Promise<string> {
  const question = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'SelfSubjectReview',
    metadata: { name: '' },
  }
  const { status } = await client.review('SelfSubjectReview', question, signal)
  const user = isRecord(status) && isRecord(status['userInfo']) ? status['userInfo'] : {}
  const username = typeof user['username'] === 'string' ? user['username'] : ''
  const groups = Array.isArray(user['groups']) ? user['groups'].map(String) : []
  const machine = machineNameOf({ username, groups })
  if (machine) return machine
  throw new CommandFailed(
    'NOT_A_MACHINE',
    `this kubeconfig makes you ${username || 'nobody'}, and workloads are run by machines`,
    {
      hint: 'make an identity for this machine and use its kubeconfig: on the server `sallyport user create NAME --machine --namespace NS`, or from here `sallyport join ADDRESS --token-file FILE --as machine NAME`',
    },
  )
}

/** The address from which this machine reaches the API is one at which it can be reached in turn. */
async function addressTowards(server: URL, signal: AbortSignal): Promise<string> {
  const host = server.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(server.port || '443')
  const found = await localAddressTo({ host, port }, connectTimeoutMs, signal)
  const address = found?.replace(/^::ffff:/, '').replace(/%.*$/, '') ?? ''
  if (isIPv4(address) || isIPv6(address)) return address
  throw new CommandFailed('NO_POD_IP', `cannot tell at which address this machine is reached`, {
    hint: 'give it with --pod-ip',
  })
}

const dnsLabel = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 50)
    .replaceAll(/^-+|-+$/g, '') || 'process'
