import type { ReasonedFailure } from './discovery-failed.ts'

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
