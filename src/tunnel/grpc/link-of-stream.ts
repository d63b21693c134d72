import { systemClock } from '../../core/index.ts'
import {
  type Capability,
  defaultLinkLimits,
  type Link,
  type LinkSide,
  PacketLink,
} from '../link/index.ts'
import { type CarrierParts, Http2Carrier } from './http2-carrier.ts'
import type { Keepalive, LinkSettings } from './options.ts'

/** Half-open peers are found within a minute; Go servers forbid anything faster. */
const defaultKeepalive: Keepalive = { timeMs: 30_000, timeoutMs: 20_000 }

/** The end of the stream that a link stands on. */
export interface StreamUnderLink extends CarrierParts {
  readonly side: LinkSide
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Readonly<Record<string, readonly string[]>>
}

/** Makes a stream whose headers have been exchanged into a link. */
export function linkOfStream(under: StreamUnderLink, settings: LinkSettings): Link {
  const { side, capabilities, metadata } = under
  const { timeMs, timeoutMs } = settings.keepalive ?? defaultKeepalive
  const isOurs = capabilities.size > 0
  const carrier = new Http2Carrier(
    under,
    { timeMs: isOurs ? timeMs : Math.max(timeMs, defaultKeepalive.timeMs), timeoutMs },
    systemClock,
  )
  // A front end is beside its server, and there is one stream for each of its connections.
  if (side === 'server' || side === 'agent') carrier.measure()
  return new PacketLink({
    carrier,
    side,
    capabilities,
    metadata,
    limits: { ...defaultLinkLimits, ...settings.limits },
    clock: systemClock,
    log: settings.log,
    packets: settings.packets,
  })
}
