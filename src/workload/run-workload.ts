import { randomBytes } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { isIPv4, isIPv6 } from 'node:net'
import { basename, join } from 'node:path'
import type { KubeClient } from '../client/index.ts'
import {
  ApiError,
  CommandFailed,
  hasReason,
  isRecord,
  machineIdentity,
  machineNameOf,
} from '../core/index.ts'
import { makePrivateDirectory, ProjectedDirectory } from './directory/projected-directory.ts'
import {
  ServiceAccountFiles,
  writeServiceAccountKubeconfig,
} from './directory/service-account-files.ts'
import { TokenSet } from './directory/token-set.ts'
import { serviceAccountPath, type WorkloadPlan } from './pod/pod-object.ts'
import { claimAddress, RegisteredPod } from './pod/registered-pod.ts'
import { placeInService } from './pod/service-endpoint.ts'
import {
  complaintOf,
  inClusterEnvironment,
  requireCommand,
  WorkloadProcess,
  workloadEnvironment,
} from './process/child-process.ts'
import { inMountNamespace, noMountNamespace } from './process/mount-namespace.ts'
import { localAddressTo } from './process/tcp.ts'
import { supervise, type WorkloadEnd } from './supervise.ts'
import type { WorkloadHost, WorkloadOptions } from './workload.ts'

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

const probeTimeoutMs = 1_000
const goodbyeMs = 5_000

/** Runs a process of this machine as a Pod of the cluster until it ends. */
export async function runWorkload(
  options: WorkloadOptions,
  host: WorkloadHost,
): Promise<WorkloadEnd> {
  if (options.inCluster && host.platform !== 'linux') throw noMountNamespace(host.platform)
  await requireCommand(options.command[0], host.env)
  let machine = ''
  try {
    machine = await requireMachine(host.client, host.drain)
    const plan = await makePlan(machine, options, host)
    const root = await makePrivateDirectory(host)
    try {
      return await runIn(root, plan, options, host)
    } finally {
      await rm(root, { recursive: true, force: true })
    }
  } catch (error) {
    if (host.drain.aborted && !(error instanceof CommandFailed)) throw interrupted()
    throw isWithoutRight(error) ? withoutRight(error, machine, options.namespace) : error
  }
}

/** RBAC's words; those of admission say themselves what to do. */
const isWithoutRight = (error: unknown): error is ApiError =>
  error instanceof ApiError && hasReason(error, 'Forbidden') && / cannot \w+ /.test(error.message)

const withoutRight = (cause: ApiError, machine: string, namespace: string): CommandFailed =>
  new CommandFailed('NO_RIGHT', cause.message, {
    cause,
    hint: `an administrator lets this machine run workloads in ${namespace} with \`kubectl create rolebinding sallyport:workloads:${machine} --namespace ${namespace} --clusterrole sallyport:workload-runner --user ${machineIdentity.userPrefix}${machine}\``,
  })

interface Place {
  readonly directory: ProjectedDirectory
  readonly env: Readonly<Record<string, string | undefined>>
  /** The command as it is to be run. */
  readonly words: (command: readonly string[]) => readonly string[]
}

/** Makes a place for the process and finds out whether it works, before the cluster is told. */
async function preparePlace(
  root: string,
  plan: WorkloadPlan,
  { inCluster }: WorkloadOptions,
  host: WorkloadHost,
): Promise<Place> {
  const source = join(root, 'serviceaccount')
  const directory = await ProjectedDirectory.create(source, host.clock)
  const shown = inCluster ? serviceAccountPath : source
  const kubeconfig = join(root, 'kubeconfig')
  const { server, onMoved, log } = host
  const facts = { server, namespace: plan.namespace, directory: shown }
  await writeServiceAccountKubeconfig(kubeconfig, facts)
  onMoved((moved) => {
    writeServiceAccountKubeconfig(kubeconfig, { ...facts, server: moved }).catch((err: unknown) =>
      log.warn({ err }, 'the process cannot be told where the cluster is now'),
    )
  })
  // Also in a cluster: without it kubectl would take ~/.kube/config, and act as the person at the keyboard.
  const own = { ...workloadEnvironment(host.env, plan, shown), KUBECONFIG: kubeconfig }
  if (!inCluster) return { directory, env: own, words: (command) => command }
  const stage = join(root, 'stage')
  await mkdir(stage, { mode: 0o700 })
  const env = { ...own, ...inClusterEnvironment(server) }
  const namespace = { isRoot: host.isRoot, source, stage, parent: host.pid }
  const words = (command: readonly string[]) => inMountNamespace(namespace, command)
  const complaint = await complaintOf(words(['true']), env)
  if (complaint !== undefined) throw noMountNamespace(host.platform, complaint)
  return { directory, env, words }
}

async function runIn(
  root: string,
  plan: WorkloadPlan,
  options: WorkloadOptions,
  host: WorkloadHost,
): Promise<WorkloadEnd> {
  const { client, clock, log, drain } = host
  const place = await preparePlace(root, plan, options, host)
  const { leaseMs } = options
  const pod = await RegisteredPod.create(plan, { client, clock, log, leaseMs }, drain)
  try {
    const files = filesOf(plan, pod, place.directory, host)
    await pod.renew(drain)
    await claimAddress(pod, plan.ip, host)
    await files.refresh(drain)
    host.onRegistered(plan)
    if (drain.aborted) throw interrupted()
    const process = new WorkloadProcess(place.words(options.command), place.env, host.sendSignal)
    const { ip, ports } = plan
    const [first] = ports
    const probe = async (signal: AbortSignal) =>
      (await localAddressTo({ host: ip, port: first?.port ?? 0 }, probeTimeoutMs, signal)) !==
      undefined
    return await supervise({ ...host, ...options, pod, files, process, ...(first && { probe }) })
  } finally {
    await pod.remove(AbortSignal.timeout(goodbyeMs)).catch((err: unknown) => {
      log.warn(
        { err },
        'the Pod could not be removed; the server removes it when its lease is over',
      )
    })
  }
}

function filesOf(
  plan: WorkloadPlan,
  pod: RegisteredPod,
  directory: ProjectedDirectory,
  { client, clock }: WorkloadHost,
): ServiceAccountFiles {
  const { namespace, serviceAccount, name } = plan
  const tokens = new TokenSet({
    client,
    clock,
    subject: { namespace, serviceAccount, pod: { name, uid: pod.uid } },
    files: plan.tokens,
    lifetimeMs: plan.tokenSeconds * 1_000,
  })
  return new ServiceAccountFiles({ client, namespace, directory, tokens })
}

const interrupted = () =>
  new CommandFailed('INTERRUPTED', 'told to end before the process was started')
