import { ApiError, type Clock, CommandFailed, hasReason } from '../../core/index.ts'
import type { RegisteredPod } from './registered-pod.ts'

/** Tells the cluster where the process will be, before it runs: one that cannot be reached there need not start. */
export async function claimAddress(
  pod: Pick<RegisteredPod, 'report'>,
  ip: string,
  { clock, drain }: { readonly clock: Clock; readonly drain: AbortSignal },
): Promise<void> {
  const now = clock.now()
  const state = { startedAt: now, isPending: true, isReady: false, since: now } as const
  await pod.report(state, drain).catch((error: unknown) => {
    throw isAbout(ip, error) ? refused(ip, error) : error
  })
}

const isAbout = (ip: string, error: unknown): error is ApiError =>
  error instanceof ApiError &&
  hasReason(error, 'Forbidden', 'Invalid') &&
  error.message.includes(ip)

const refused = (ip: string, cause: ApiError): CommandFailed =>
  new CommandFailed(
    'POD_IP_REFUSED',
    `the cluster does not take ${ip} for the address of this workload: ${cause.message}`,
    { hint: 'give one of this machine at which the cluster reaches it: --pod-ip IP', cause },
  )
