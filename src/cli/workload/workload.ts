import { tmpdir } from 'node:os'
import process from 'node:process'
import { CommandFailed, systemClock, systemErrorCode } from '../../core/index.ts'
import type { Cluster } from '../../kubeconfig/index.ts'
import type { WorkloadHost, WorkloadPlan } from '../../workload/index.ts'
import { pluginHostOf } from '../cluster-source.ts'
import { defineCommand } from '../command.ts'
import type { Io } from '../io.ts'
import { createLogger } from '../logger.ts'
import { openWorkloadCluster } from './cluster.ts'
import { readWorkload, type WorkloadValues, workloadOptions } from './options.ts'

/** `sallyport workload run`. */
export const workloadRunCommand = defineCommand({
  command: 'sallyport workload run',
  summary:
    'Run a process of this machine as a Pod: with a service account, and as an endpoint of a Service',
  arguments: [
    {
      name: '-- COMMAND',
      describe: 'what to run, with its arguments; its exit code is passed on',
      required: true,
      repeatable: true,
    },
  ],
  options: workloadOptions,
  examples: [
    {
      line: 'sallyport user create laptop --machine',
      does: 'once: an identity for this machine, in laptop.kubeconfig',
    },
    {
      line: 'sallyport workload run --kubeconfig laptop.kubeconfig -- kubectl auth whoami',
      does: 'asks the cluster who the process is',
    },
    {
      line: 'sallyport workload run --service-account web --service web --port 8080 -- node server.js',
      does: 'an endpoint of the Service web, once it accepts connections on port 8080',
    },
    {
      line: 'sallyport workload run --audience vault -- vault-agent',
      does: 'a second token, for vault alone, in the file vault beside token',
    },
  ],
  run: async ({ options: values, args }, io) => {
    const { runWorkload } = await import('../../workload/index.ts')
    const { context, transport, ...host } = await openHost(values, io)
    const workload = readWorkload(values, args, context.namespace)
    const onRegistered = (plan: WorkloadPlan) => tell(plan, values, io)
    const end = await runWorkload(workload, { ...host, onRegistered }).finally(() =>
      transport.destroy?.(),
    )
    if (!end.isEvicted) return end.exitCode
    throw new CommandFailed('POD_DELETED', 'the Pod was deleted, so the process was ended', {
      hint: 'whoever may delete Pods can do that; so does the server when this machine was not heard of for the time of its lease, or was revoked',
    })
  },
})

async function openHost(values: WorkloadValues, io: Io) {
  const { createKubeClient } = await import('../../client/index.ts')
  const { loadContext } = await import('../../kubeconfig/index.ts')
  const sources = {
    explicitPath: values.kubeconfig,
    kubeconfig: io.env['KUBECONFIG'],
    home: io.homeDirectory,
  }
  const { warnings, ...context } = await loadContext(sources, values.context)
  const all = values.inCluster ? [...warnings, ...unknownInCluster(context.cluster)] : warnings
  for (const warning of all) io.stderr(`warning: ${warning}\n`)
  const log = createLogger({
    level: values.logLevel,
    format: 'text',
    clock: systemClock,
    write: (line) => io.stderr(line),
  })
  const plugins = { plugins: await pluginHostOf(io), proxyEnv: io.env }
  const { transport, onMoved } = await openWorkloadCluster(context, plugins, log)
  return {
    context,
    transport,
    onMoved,
    client: createKubeClient({ transport, userAgent: 'sallyport-workload' }),
    server: new URL(context.cluster.server),
    env: io.env,
    platform: process.platform,
    isRoot: io.isRoot,
    pid: process.pid,
    uid: process.getuid?.() ?? 0,
    isAlive,
    runtimeDirectories: [io.env['XDG_RUNTIME_DIR'], tmpdir()].flatMap((path) => path || []),
    sendSignal: (pid, signal) => void process.kill(pid, signal),
    clock: systemClock,
    log,
    drain: io.drain,
    kill: io.kill,
  } satisfies Omit<WorkloadHost, 'onRegistered'> & Record<'context' | 'transport', unknown>
}

/** What a kubeconfig says of a cluster and in-cluster clients never learn. */
const unknownInCluster = ({ tlsServerName, proxyUrl, insecureSkipTlsVerify }: Cluster): string[] =>
  [
    tlsServerName !== undefined && 'tls-server-name',
    proxyUrl !== undefined && 'proxy-url',
    insecureSkipTlsVerify === true && 'insecure-skip-tls-verify',
  ].flatMap((name) => (name ? [`in-cluster clients know no ${name}, which this cluster has`] : []))

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // Somebody else's process is a process too.
    return systemErrorCode(error) !== 'ESRCH'
  }
}

/** The process has the standard output from then on; the words are for the person at the terminal. */
function tell(plan: WorkloadPlan, { output, service }: WorkloadValues, io: Io): void {
  const { namespace, name, serviceAccount, ip, ports } = plan
  if (output === 'json') {
    const pod = { namespace, name, ip, ports: ports.map(({ port }) => port) }
    io.stdout(`${JSON.stringify({ pod, serviceAccount, service })}\n`)
    return
  }
  if (!io.interactive) return
  const places = ports.map(({ port }) => `${ip.includes(':') ? `[${ip}]` : ip}:${port}`)
  const where = places.length > 0 ? `, serving on ${places.join(', ')}` : ''
  const whose = service === undefined ? '' : ` for Service ${service}`
  io.stderr(`Pod ${namespace}/${name} runs as service account ${serviceAccount}${where}${whose}\n`)
}
