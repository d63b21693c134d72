import type { Readable } from 'node:stream'
import {
  type Clock,
  type Logger,
  pause,
  type Secret,
  silentLogger,
  systemClock,
} from '../../core/index.ts'
import type { BootstrapToken } from '../tokens/bootstrap-token.ts'
import { parseApiAddress, parseJoinToken } from './addresses.ts'
import { badArguments, type ReasonedFailure } from './errors.ts'
import { defaultTimeoutMs, defaultTokenTimeoutMs } from './limits.ts'
import { systemRoots } from './system-roots.ts'
import { parsePin } from './verify.ts'

/** What speaks for a document. */
export type Proof =
  /** The whole answer is signed with the token. */
  | 'signed-answer'
  /** The document is signed with the token. */
  | 'signed-document'
  /** Every root has one of the given pins. */
  | 'pins'
  /** The server proved with these roots who it is, and said the same again. */
  | 'second-fetch'
  /** It came by a way that the user vouches for. */
  | 'out-of-band'
  /** It came from a URL whose certificate the system's roots vouch for. */
  | 'system-roots'

/** What happens while a cluster is looked for. */
export type DiscoveryProgress =
  | { readonly step: 'asking'; readonly address: string }
  | { readonly step: 'reading'; readonly where: string }
  | { readonly step: 'proven'; readonly proof: Proof }
  | { readonly step: 'probing'; readonly address: string }
  | { readonly step: 'warning'; readonly message: string }
  /** The failure may pass; the next attempt is made after `waitMs`. */
  | { readonly step: 'waiting'; readonly failure: ReasonedFailure<string>; readonly waitMs: number }

/** How a cluster is found: exactly one way. */
export type DiscoveryMethod =
  /** By the address of at least one API server, as people type it, and a token: `id.secret`, with or without `@sha256:...`. */
  | {
      readonly by: 'token'
      readonly addresses: readonly string[]
      readonly token: Secret | string
      /** Accept answers to signed requests only. */
      readonly requireJwt?: boolean
    }
  /** By a document that came some other way. */
  | { readonly by: 'file'; readonly path: string }
  | { readonly by: 'stream'; readonly stream: Readable; readonly name: string }
  /** By a document at an https URL that the roots of this system vouch for. */
  | { readonly by: 'url'; readonly url: string }

/** What is wanted. */
export interface DiscoveryOrder {
  readonly method: DiscoveryMethod
  /** Pins of the cluster's roots; if there are any, every root must have one of them. */
  readonly pins?: readonly string[]
  /** Use the address that was typed, not the one that the cluster announces; by token only. */
  readonly keepAddress?: boolean
  /** How long to go on while the failure may pass; five minutes unless given, 0 is one attempt. */
  readonly timeoutMs?: number
  /** How long to go on while the cluster answers and does not know the token; half a minute unless given. */
  readonly tokenTimeoutMs?: number
}

/** What discovery works with; the defaults are the machine's own. */
export interface DiscoveryParts {
  readonly signal?: AbortSignal
  readonly clock?: Clock
  readonly onProgress?: (progress: DiscoveryProgress) => void
  /** Told at `trace` of every request and decision; nothing secret is in it. */
  readonly log?: Logger
  /** The roots that this system trusts, as PEM texts. */
  readonly systemRoots?: () => Promise<readonly string[]>
  /** Waits between attempts. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** An order that was checked: nothing in it is malformed. */
export interface CheckedOrder {
  readonly method:
    | {
        readonly by: 'token'
        readonly addresses: readonly string[]
        readonly token: BootstrapToken
        readonly requireJwt: boolean
      }
    | Exclude<DiscoveryMethod, { readonly by: 'token' }>
  readonly pins: readonly string[]
  readonly keepAddress: boolean
  readonly timeoutMs: number
  readonly tokenTimeoutMs: number
}

/** Checks an order before anything is sent or read; throws DiscoveryFailed for the first mistake. */
export function checkDiscoveryOrder(order: DiscoveryOrder): CheckedOrder {
  const pins = (order.pins ?? []).map(parsePin)
  const common = {
    keepAddress: order.keepAddress ?? false,
    timeoutMs: order.timeoutMs ?? defaultTimeoutMs,
    tokenTimeoutMs: order.tokenTimeoutMs ?? defaultTokenTimeoutMs,
  }
  const { method } = order
  if (method.by === 'token') {
    const { token, pins: further } = parseJoinToken(method.token)
    const addresses = [...new Set(method.addresses.map(parseApiAddress))]
    if (addresses.length === 0)
      throw badArguments('there is no address to ask', 'give that of at least one API server')
    return {
      ...common,
      pins: [...new Set([...pins, ...further])],
      method: { by: 'token', addresses, token, requireJwt: method.requireJwt ?? false },
    }
  }
  if (common.keepAddress)
    throw badArguments('without an address that was typed there is none to keep', 'leave it out')
  return { ...common, pins, method: method.by === 'url' ? checkedUrl(method.url) : method }
}

function checkedUrl(text: string): { readonly by: 'url'; readonly url: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined
  // Not repeated: what is not understood may well hold a password.
  if (url?.protocol !== 'https:')
    throw badArguments(
      'the URL of the document must begin with https://',
      'what comes by another way can be piped: --cluster-info-file -',
    )
  if (url.username !== '' || url.password !== '')
    throw badArguments(
      'the URL of the document has a user or a password in it',
      'pipe it instead: curl ... | sallyport join --cluster-info-file -',
    )
  return { by: 'url', url: url.href }
}

/** The parts with everything filled in. */
export function completeParts(parts: DiscoveryParts): Required<DiscoveryParts> {
  return {
    signal: new AbortController().signal,
    clock: systemClock,
    onProgress: () => {},
    log: silentLogger,
    systemRoots: () => systemRoots(),
    pause,
    ...parts,
  }
}
