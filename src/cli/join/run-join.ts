import { kubeTime, systemClock, WrongUsage } from '../../core/index.ts'
import { type Discovery, systemRoots } from '../../discovery/client/index.ts'
import {
  bootstrapCredential,
  type JoinIdentity,
  type JoinOrder,
  joinCluster,
  joinedKubeconfig,
  problemOfIdentity,
  usernameOf,
} from '../../discovery/join/index.ts'
import { LocationLost, refreshLocation } from '../../discovery/refresh/index.ts'
import { type Cluster, renderKubeconfig, writeKubeconfig } from '../../kubeconfig/index.ts'
import type { Io } from '../io.ts'
import { expired, requireSameGroups } from './check-renewal.ts'
import {
  PendingKey,
  type PresentIdentity,
  presentIdentity,
  refuseOccupied,
  writeIdentityFiles,
} from './join-files.ts'
import type { JoinOptions } from './join-options.ts'
import { addressMissing, type JoinPlan, planJoin } from './join-plan.ts'
import { JoinRun } from './join-run.ts'

/** What a join has left behind. */
export interface JoinOutcome {
  readonly did: 'found' | 'joined' | 'renewed' | 'present'
  readonly cluster: Cluster
  /** The file, or `-`. */
  readonly kubeconfig: string
  /** Absent if nobody had to look for the cluster. */
  readonly discovery?: Discovery
  /** Absent with --discovery-only. */
  readonly identity?: {
    readonly username: string
    readonly expires: string
    readonly request?: string
  }
  /** The directory of the files for other programs. */
  readonly certDir?: string
}

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
  return { ...(await obtain({ cluster, credential, as }, out, run)), discovery }
}

/** Leaves a certificate that is good, renews it with itself in time; undefined if it is too late for that. */
async function keepOrRenew(
  present: PresentIdentity,
  as: JoinIdentity,
  { out, run }: { readonly out: string; readonly run: JoinRun },
): Promise<JoinOutcome | undefined> {
  const life = lifeOf(present)
  if (life === 'over') {
    if (run.options.renew && !run.plan.method) throw expired(present, out)
    return undefined
  }
  if (life === 'good' && !run.options.renew) return asItIs(present, as, { out, run })
  requireSameGroups(present, as, out)
  const why = life === 'ending' ? `${out} expires soon: renewing it` : `Renewing ${out}`
  run.reporter.line(`${why} with its own certificate`)
  const cluster = await currentCluster(present, run)
  const order = { cluster, credential: present.user, as }
  return { ...(await obtain(order, out, run)), did: 'renewed' }
}

/** The cluster as it says itself that it is now: its CA may be about to be replaced. */
async function currentCluster({ cluster, user }: PresentIdentity, run: JoinRun): Promise<Cluster> {
  try {
    const found = await refreshLocation({ cluster, user, signal: run.io.drain, log: run.log })
    for (const note of found.notes) run.reporter.line(`warning: ${note}`)
    return found.cluster
  } catch (error) {
    if (!(error instanceof LocationLost)) throw error
    run.reporter.line(`warning: ${error.message}`)
    return cluster
  }
}

/** Gets the certificate and leaves it in files; the key is kept from before the request to the end. */
async function obtain(
  order: Pick<JoinOrder, 'cluster' | 'credential' | 'as'>,
  out: string,
  run: JoinRun,
): Promise<JoinOutcome> {
  const { options } = run
  const pending = new PendingKey(out === '-' ? undefined : out)
  if (options.force) await pending.remove()
  const keyPem = await pending.read()
  const identity = await joinCluster(
    {
      ...order,
      timeoutMs: options.timeout,
      approvalTimeoutMs: options.approvalTimeout,
      ...(keyPem && { keyPem }),
      ...(options.lifetime !== undefined && { lifetimeMs: options.lifetime }),
    },
    {
      ...run.parts,
      keepKey: (key) => pending.keep(key),
      onJoinProgress: (progress) => run.reporter.join(progress),
    },
  )
  const certDir = certDirOf(options, out)
  if (certDir !== undefined)
    await writeIdentityFiles(certDir, await caOf(order.cluster, run), identity)
  const config = joinedKubeconfig(order.cluster, identity)
  if (out === '-') run.io.stdout(await renderKubeconfig(config))
  else await writeKubeconfig(out, config)
  await pending.remove()
  return {
    did: 'joined',
    cluster: order.cluster,
    kubeconfig: out,
    identity: {
      username: identity.username,
      expires: kubeTime(identity.expiresAt),
      request: identity.request,
    },
    ...(certDir !== undefined && { certDir }),
  }
}

/** Nothing to do, except that files for other programs may be missing. */
async function asItIs(
  present: PresentIdentity,
  as: JoinIdentity,
  { out, run }: { readonly out: string; readonly run: JoinRun },
): Promise<JoinOutcome> {
  const { cluster, user, certificate } = present
  const certDir = certDirOf(run.options, out)
  const { clientCertificateData: certificatePem, clientKeyData: keyPem } = user
  if (certDir !== undefined && certificatePem !== undefined && keyPem)
    await writeIdentityFiles(certDir, await caOf(cluster, run), { certificatePem, keyPem })
  return {
    did: 'present',
    cluster,
    kubeconfig: out,
    identity: { username: usernameOf(as), expires: kubeTime(Date.parse(certificate.validTo)) },
    ...(certDir !== undefined && { certDir }),
  }
}

/** A certificate is renewed in the last third of its life. */
function lifeOf({ certificate }: PresentIdentity): 'good' | 'ending' | 'over' {
  const end = Date.parse(certificate.validTo)
  const left = end - systemClock.now()
  if (left <= 0) return 'over'
  return left > (end - Date.parse(certificate.validFrom)) / 3 ? 'good' : 'ending'
}

/** An agent takes files, so it gets some beside the kubeconfig. */
const certDirOf = ({ certDir, tunnelAgent }: JoinOptions, out: string): string | undefined =>
  certDir ?? (tunnelAgent ? `${out.replace(/\.kubeconfig$/, '')}.pki` : undefined)

const caOf = async ({ certificateAuthorityData: pem }: Cluster, run: JoinRun): Promise<string> =>
  pem ?? (await systemRoots(run.io.env)).join('\n')

const fileFor = (name: string): string => `${name.replaceAll(/[^\w.@-]/g, '_')}.kubeconfig`

const nothingToJoin = ({ method }: JoinPlan, options: JoinOptions): WrongUsage =>
  method
    ? new WrongUsage(
        'a token that gets the certificate is missing: give --token, --token-file or SALLYPORT_TOKEN, or --discovery-only to do without',
      )
    : addressMissing(options)
