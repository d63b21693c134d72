import {
  bootstrapCredential,
  type JoinIdentity,
  joinedKubeconfig,
  problemOfIdentity,
  usernameOf,
} from '../../bootstrap/join/index.ts'
import { WrongUsage } from '../../core/index.ts'
import { renderKubeconfig, writeKubeconfig } from '../../kubeconfig/index.ts'
import { tunnelAgentOptionValues } from '../../tunnel/agent/index.ts'
import type { Io } from '../io.ts'
import { runTunnelAgent } from '../tunnel/run-agent.ts'
import { identityFilesIn, presentIdentity, refuseOccupied } from './files.ts'
import { type JoinOutcome, JoinRun, obtain } from './obtain.ts'
import type { JoinOptions } from './options.ts'
import { addressMissing, type JoinPlan, planJoin } from './plan.ts'
import { keepOrRenew } from './renewal.ts'

/** Runs `sallyport join` up to the files that it leaves. */
export async function runJoin(
  options: JoinOptions,
  args: readonly string[],
  io: Io,
): Promise<JoinOutcome> {
  const plan = planJoin(options, args)
  const run = new JoinRun(options, plan, io)
  try {
    return plan.identity ? await joinAs(plan.identity, run) : await findOnly(run)
  } finally {
    run.reporter.end()
  }
}

async function findOnly(run: JoinRun): Promise<JoinOutcome> {
  const { options, plan, io } = run
  if (!plan.method) throw nothingToJoin(plan, options)
  if (options.out !== undefined && options.out !== '-' && !options.force)
    await refuseOccupied(options.out)
  const discovery = await run.discover(plan.method)
  const { cluster } = discovery
  const out = options.out ?? fileFor(new URL(cluster.server).hostname)
  const config = joinedKubeconfig(cluster)
  if (out === '-') io.stdout(await renderKubeconfig(config))
  else {
    if (!options.force) await refuseOccupied(out)
    await writeKubeconfig(out, config)
  }
  return { did: 'found', cluster, kubeconfig: out, discovery }
}

async function joinAs(as: JoinIdentity, run: JoinRun): Promise<JoinOutcome> {
  const { options, plan } = run
  const problem = problemOfIdentity(as)
  if (problem !== undefined) throw new WrongUsage(problem)
  const out = options.out ?? fileFor(as.name)
  const present =
    out === '-' || options.force ? undefined : await presentIdentity(out, usernameOf(as))
  const isThere = present && (await keepOrRenew(present, as, { out, run }))
  if (isThere) return isThere
  if (!plan.method || !plan.bootstrapToken) throw nothingToJoin(plan, options)
  const discovery = await run.discover(plan.method)
  const { cluster } = discovery
  const credential = bootstrapCredential(await run.token(plan.bootstrapToken))
  return { ...(await obtain({ cluster, credential, as }, { out, present, run })), discovery }
}

const fileFor = (name: string): string => `${name.replaceAll(/[^\w.@-]/g, '_')}.kubeconfig`

const nothingToJoin = ({ method }: JoinPlan, options: JoinOptions): WrongUsage =>
  method
    ? new WrongUsage(
        'a token that gets the certificate is missing: give --token, --token-file or SALLYPORT_TOKEN, or --discovery-only to do without',
      )
    : addressMissing(options)

/** Runs a tunnel agent with the certificate of a join, until the process is told to end. */
export async function runJoinedAgent(
  { cluster, certDir, identity }: JoinOutcome & { readonly certDir: string },
  options: JoinOptions,
  io: Io,
): Promise<void> {
  const { ca, certificate, key } = identityFilesIn(certDir)
  const apiHost = new URL(cluster.server).hostname.replaceAll(/[[\]]/g, '')
  const node = identity?.username.replace(/^system:node:/, '') ?? ''
  const values = tunnelAgentOptionValues({
    caCert: ca,
    agentCert: certificate,
    agentKey: key,
    proxyServerHost: options.tunnelServer.length > 0 ? options.tunnelServer : [apiHost],
    agentIdentifiers: `host=${node}`,
    healthServerPort: options.healthServerPort,
    adminServerPort: options.adminServerPort,
    logLevel: options.logLevel,
  })
  await runTunnelAgent({ ...values, output: options.output }, io)
}

/** Prints what a join has done, for a person or for a program. */
export function tellOutcome(outcome: JoinOutcome, { output }: JoinOptions, io: Io): void {
  const text = output === 'json' ? JSON.stringify(summary(outcome)) : sentence(outcome)
  // A kubeconfig on standard output stands alone.
  if (outcome.kubeconfig === '-') io.stderr(`${text}\n`)
  else io.stdout(`${text}\n`)
}

function summary({ did, cluster, kubeconfig, discovery, identity, certDir }: JoinOutcome): object {
  return {
    did,
    kubeconfig,
    server: cluster.server,
    ...(discovery && {
      advertised: discovery.advertised,
      ...(discovery.asked !== undefined && { asked: discovery.asked }),
      proofs: discovery.proofs,
      pins: discovery.pins,
      warnings: discovery.warnings,
    }),
    ...identity,
    ...(certDir !== undefined && { certDir }),
  }
}

function sentence({ did, cluster, kubeconfig, identity }: JoinOutcome): string {
  const file = kubeconfig === '-' ? 'the kubeconfig above' : kubeconfig
  if (!identity)
    return `${file} says where ${cluster.server} is and whom to trust; it has no user yet`
  const { username, expires } = identity
  const until = `is ${username} at ${cluster.server} until ${expires}`
  if (did === 'present') return `${file} ${until}: nothing to do (--force joins anew)`
  return did === 'renewed' ? `${file} ${until}: renewed` : `${file} ${until}`
}
