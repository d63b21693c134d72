import type { Clock } from '../../../core/index.ts'
import { type Channel, DialFailed, type Link } from '../../link/index.ts'

/** One link for a new connection: a random one that can dial for us, and of those that stay if there is any. */
function chooseLink(
  links: readonly Link[],
  tried: ReadonlySet<Link>,
  random: () => number,
): Link | undefined {
  const able = links.filter((link) => link.capabilities.has('rdial') && !tried.has(link))
  const staying = able.filter((link) => !link.isDraining)
  const candidates = staying.length > 0 ? staying : able
  return candidates[Math.floor(random() * candidates.length)]
}

/** Why a local connection cannot go on before anybody was asked. */
class NoServerForNodes extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'NoServerForNodes'
  }
}

/** How the control plane is dialled. */
export interface ControlPlaneDial {
  /** The links as they are now. */
  readonly links: () => readonly Link[]
  readonly clock: Clock
  readonly random: () => number
  /** For all attempts together. */
  readonly deadlineMs: number
  readonly signal: AbortSignal
}

/** Why no link can carry connections of nodes now, or nothing. */
export function whyNoLink(links: readonly Link[]): string | undefined {
  if (links.length === 0) return 'no servers connected'
  if (links.some((link) => link.capabilities.has('rdial'))) return undefined
  return 'no connected server takes connections from nodes (it lacks the capability rdial)'
}

/** Lets a server connect to `address`; another one is asked when the first is lost before its answer. */
export async function dialControlPlane(
  address: string,
  options: ControlPlaneDial,
): Promise<Channel> {
  const { clock, signal } = options
  const deadline = clock.monotonic() + options.deadlineMs
  const tried = new Set<Link>()
  let lost: DialFailed | undefined
  for (;;) {
    const links = options.links()
    const link = chooseLink(links, tried, options.random)
    if (link === undefined) {
      throw lost ?? new NoServerForNodes(whyNoLink(links) ?? 'no server is left to try')
    }
    tried.add(link)
    try {
      const deadlineMs = Math.max(1, deadline - clock.monotonic())
      return await link.dial(address, { signal, deadlineMs })
    } catch (error) {
      if (!(error instanceof DialFailed) || error.reason !== 'link-lost') throw error
      lost = error
    }
  }
}
