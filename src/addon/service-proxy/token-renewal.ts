import { pause, withinTime } from '../../core/index.ts'
import type { ForwardPolicy } from '../../http/forward/index.ts'
import { rawHeaderValues } from '../../http/index.ts'
import { requestStatus, type Upstream } from '../../http/upstream/index.ts'
import { renewTunnelHeader, tunnelHeader } from '../token/index.ts'

const maxResponseMs = 10_000

/** The guard behind which a tunnel is open, and where its fresh tokens come from. */
export interface TunnelRenewal {
  readonly upstream: Upstream
  readonly host: string
  readonly path: string
  readonly everyMs: number
  readonly token: () => Promise<string>
}

/** The name that the guard of an add-on has given to a tunnel, if there is one. */
export function tunnelNameIn(rawHeaders: readonly string[]): string | undefined {
  const [name = '', ...others] = rawHeaderValues(rawHeaders, tunnelHeader)
  return others.length === 0 && /^[\w-]{1,64}$/.test(name) ? name : undefined
}

/** Renews the token of a tunnel that a guard has given a name to, until `signal` aborts. */
export function renewing(
  policy: ForwardPolicy,
  renewal: TunnelRenewal,
  signal: AbortSignal,
): ForwardPolicy {
  return {
    responseHeaders: (head) => {
      const name = head.status === 101 ? tunnelNameIn(head.rawHeaders) : undefined
      if (name !== undefined) void keepTunnel(renewal, name, signal)
      return policy.responseHeaders(head)
    },
    transform: (head) => policy.transform?.(head),
    failure: (error) => policy.failure(error),
  }
}

/**
 * Lets a tunnel outlive the token that it was opened with: before that expires, the guard is sent a fresh one of the same
 * user. It stops with the tunnel, and so with the user's rights. A guard that is not reached closes the tunnel itself.
 */
export async function keepTunnel(
  renewal: TunnelRenewal,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await pause(renewal.everyMs, signal)
    if (signal.aborted) return
    // What fails now may work the next time; until then the previous token may be enough.
    await renewOnce(renewal, name, signal).catch(() => {})
  }
}

async function renewOnce(
  { upstream, host, path, token }: TunnelRenewal,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const authorization = `Bearer ${await token()}`
  const headers = ['Host', host, renewTunnelHeader, name, 'Authorization', authorization]
  const request = { method: 'GET', path, headers }
  await withinTime(maxResponseMs, signal, (within) => requestStatus(upstream, request, within))
}
