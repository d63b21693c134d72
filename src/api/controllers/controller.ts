import type { Clock, ClusterView, Key, Kind, KubeObject, Logger, Query } from '../../core/index.ts'

import type { Pauses } from './work-queue.ts'

/** An object that is gone; its uid is known when its end was seen. */
export type GoneObject = Key & { readonly uid?: string }

/** A picture of the objects of one kind, kept by the runner, and what their changes ask for. */
export interface Watch {
  readonly kind: Kind
  readonly query: Query
  /** Takes in an object that is new or has changed; returns the keys to reconcile because of it. */
  put(object: KubeObject): Iterable<string>
  /** Takes in that an object is gone; returns the keys to reconcile because of it. */
  remove(object: GoneObject): Iterable<string>
  /** All objects in the picture. */
  known(): Iterable<Key>
  /** Called when everything had to be listed again; returns the keys to reconcile because of it. */
  relisted?(): Iterable<string>
}

/** What a look at a key found: undefined when all is well, or when to look again. */
export type Outcome = { readonly againAfterMs: number } | { readonly again: true } | undefined

/** Brings the cluster, key by key, to the state it should have. */
export interface Controller {
  readonly name: string
  readonly watches: readonly Watch[]
  /** Looked at once at the start, besides what the watches ask for. */
  readonly firstKeys?: readonly string[]
  /** Called once with how to have keys looked at for other reasons than changes of objects. */
  attach?(ask: (key: string) => void): void
  /** Between attempts at a key that fails or is not done yet, where the usual ones do not fit. */
  readonly pauses?: Pauses
  /** Throwing means: try again after a growing pause. */
  reconcile(key: string, signal: AbortSignal): Promise<Outcome>
}

/** What controllers work with. */
export interface ControllerOptions {
  readonly view: ClusterView
  readonly log: Logger
  readonly clock: Clock
}
