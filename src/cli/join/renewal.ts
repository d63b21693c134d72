import {
  JoinFailed,
  type JoinIdentity,
  organizationsOf,
  usernameOf,
} from '../../bootstrap/join/index.ts'
import { refreshLocation } from '../../bootstrap/refresh/index.ts'
import { CommandFailed, machineIdentity, SallyportError, systemClock } from '../../core/index.ts'
import type { Cluster } from '../../kubeconfig/index.ts'
import { readCertificateFields } from '../../pki/trust/index.ts'
import type { PresentIdentity } from './files.ts'
import { asItIs, type JoinOutcome, type JoinRun, obtain } from './obtain.ts'

/** A certificate that is over proves nothing, so it cannot renew itself. */
const expired = ({ certificate }: PresentIdentity, file: string): CommandFailed =>
  new CommandFailed(
    'CERTIFICATE_EXPIRED',
    `the certificate in ${file} ended at ${certificate.validTo}, so it cannot renew itself`,
    { hint: 'join anew: give ADDRESS and --token-file' },
  )

/** Whoever has no right to ask for certificates cannot renew their own. */
const mayNotAsk = (username: string, file: string): CommandFailed =>
  new CommandFailed(
    'REQUEST_FORBIDDEN',
    `${username} may not ask this cluster for certificates, so ${file} cannot renew itself`,
    { hint: 'give ADDRESS and --token-file, and have an administrator approve the request' },
  )

/** Refuses a renewal that would take groups away without a word. */
function requireSameGroups({ certificate }: PresentIdentity, as: JoinIdentity, file: string): void {
  const wanted = organizationsOf(as)
  const { organizations } = readCertificateFields(certificate.raw).subject
  const lost = organizations.filter((name) => !wanted.includes(name))
  if (lost.length === 0) return
  throw new CommandFailed(
    'GROUPS_LOST',
    `${file} is in the groups ${organizations.join(', ')}, and renewed it would lose ${lost.join(', ')}`,
    { hint: hintFor(lost) },
  )
}

const hintFor = (lost: readonly string[]): string =>
  lost.includes(machineIdentity.loopbackGroup)
    ? "a machine on the server's own loopback is made anew there: `sallyport user create NAME --machine`"
    : `name them: ${lost.map((name) => `--group ${name}`).join(' ')}; or --force with a token joins anew`

/** Leaves a certificate that is good, renews it with itself in time; undefined if it is too late for that. */
export async function keepOrRenew(
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
  try {
    return { ...(await obtain(order, { out, present, run })), did: 'renewed' }
  } catch (error) {
    if (as.kind === 'node' || !isForbidden(error)) throw error
    return withoutRenewal(present, as, { out, run })
  }
}

/** In most clusters people may not ask for certificates themselves: a token may, and somebody approves it. */
async function withoutRenewal(
  present: PresentIdentity,
  as: JoinIdentity,
  { out, run }: { readonly out: string; readonly run: JoinRun },
): Promise<JoinOutcome | undefined> {
  const failure = mayNotAsk(usernameOf(as), out)
  if (run.plan.method && run.plan.bootstrapToken) {
    run.reporter.line(`${failure.message}: asking with the token`)
    return undefined
  }
  if (run.options.renew) throw failure
  run.reporter.line(`warning: ${failure.message}; ${failure.hint}`)
  return asItIs(present, as, { out, run })
}

const isForbidden = (error: unknown): boolean =>
  error instanceof JoinFailed && error.reason === 'request-forbidden'

/** The cluster as it says itself that it is now, since its CA may be about to be replaced; as it was if it does not say. */
async function currentCluster({ cluster, user }: PresentIdentity, run: JoinRun): Promise<Cluster> {
  try {
    const found = await refreshLocation({ cluster, user, signal: run.io.drain, log: run.log })
    for (const note of found.notes) run.reporter.line(`warning: ${note}`)
    return found.cluster
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error
    run.reporter.line(`warning: ${error.message}`)
    return cluster
  }
}

/** A certificate is renewed in the last third of its life. */
function lifeOf({ certificate }: PresentIdentity): 'good' | 'ending' | 'over' {
  const end = Date.parse(certificate.validTo)
  const left = end - systemClock.now()
  if (left <= 0) return 'over'
  return left > (end - Date.parse(certificate.validFrom)) / 3 ? 'good' : 'ending'
}
