import type { Http2Stream } from 'node:http2'
import { systemClock } from '../../core/index.ts'
import {
  type Capability,
  defaultLinkLimits,
  type Link,
  type LinkSide,
  PacketLink,
} from '../link/index.ts'
import { Http2Carrier, type StreamEnd } from './http2-carrier.ts'
import type { Keepalive, LinkSettings } from './options.ts'

/** Half-open peers are found within a minute; Go servers forbid anything faster. */
export const defaultKeepalive: Keepalive = { timeMs: 30_000, timeoutMs: 20_000 }

/** The end of the stream that a link stands on. */
export interface StreamUnderLink {
  readonly stream: Http2Stream
  readonly end: StreamEnd
  readonly side: LinkSide
  readonly capabilities: ReadonlySet<Capability>
  readonly metadata: Readonly<Record<string, readonly string[]>>
}

/** Makes a stream whose headers have been exchanged into a link. */
export function linkOfStream(under: StreamUnderLink, settings: LinkSettings): Link {
  const { stream, end, side, capabilities, metadata } = under
  const { timeMs, timeoutMs } = settings.keepalive ?? defaultKeepalive
  const carrier = new Http2Carrier(
    stream,
    end,
    {
      timeMs: capabilities.size > 0 ? timeMs : Math.max(timeMs, defaultKeepalive.timeMs),
      timeoutMs,
    },
    systemClock,
  )
  if (capabilities.has('credit')) carrier.measure()
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
