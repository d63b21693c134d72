import { WrongUsage } from '../../core/index.ts'
import {
  bootstrapCredential,
  type JoinIdentity,
  joinedKubeconfig,
  problemOfIdentity,
  usernameOf,
} from '../../discovery/join/index.ts'
import { renderKubeconfig, writeKubeconfig } from '../../kubeconfig/index.ts'
import type { Io } from '../io.ts'
import { presentIdentity, refuseOccupied } from './join-files.ts'
import type { JoinOptions } from './join-options.ts'
import type { JoinOutcome } from './join-outcome.ts'
import { addressMissing, type JoinPlan, planJoin } from './join-plan.ts'
import { JoinRun } from './join-run.ts'
import { obtain } from './obtain.ts'
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
