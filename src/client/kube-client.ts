import {
  ApiError,
  type Key,
  type Kind,
  type KubeObject,
  type ObjectList,
  type Preconditions,
  type Query,
  type ReviewKind,
  type WatchEvent,
} from '../core/index.ts'
import { isStatus } from './errors.ts'
import { creationPath, KindLookup, objectPath } from './kinds.ts'
import {
  asKubeObject,
  listObjects,
  reviewKind,
  reviewRequest,
  statedPreconditions,
} from './objects.ts'
import {
  type Answer,
  type ApiRequest,
  type ExchangeContext,
  exchange,
  exchangeJson,
} from './request.ts'
import type { Transport } from './transport.ts'
import { watchObjects } from './watch.ts'

/** What a client is made of. */
export interface KubeClientOptions {
  readonly transport: Transport
  /** From the sending of a request to the last byte of its answer; 30 s unless given. */
  readonly timeoutMs?: number
  /** Of one answer, or of one event of a watch; 128 MiB unless given. */
  readonly maxAnswerBytes?: number
  readonly userAgent?: string
  /** Kinds that `kindOf` knows without asking the server. */
  readonly kinds?: readonly Kind[]
}

/** What a write may be about besides the object itself. */
export type WriteOptions = { readonly subresource?: string } & Preconditions

/** A small client of a Kubernetes API. Failures that the server reports are ApiErrors. */
export interface KubeClient {
  /** `undefined` when there is no such object. */
  get(kind: Kind, key: Key, signal: AbortSignal): Promise<KubeObject | undefined>
  /** Everything at one version, however many pages it takes. */
  list(kind: Kind, query: Query, signal: AbortSignal): Promise<ObjectList>
  /** Changes after `from`, with bookmarks; see ClusterView. Throws ConnectionFailed when the connection is lost. */
  watch(
    kind: Kind,
    query: Query & { readonly from: string },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent>
  create(
    kind: Kind,
    object: KubeObject,
    options: { readonly subresource?: string },
    signal: AbortSignal,
  ): Promise<KubeObject>
  update(
    kind: Kind,
    object: KubeObject,
    options: WriteOptions,
    signal: AbortSignal,
  ): Promise<KubeObject>
  /** The object while finalizers or a grace period hold it; `undefined` when it is gone at once. */
  delete(
    kind: Kind,
    key: Key,
    preconditions: Preconditions,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined>
  review(kind: ReviewKind, object: KubeObject, signal: AbortSignal): Promise<KubeObject>
  /** Any request; throws an ApiError unless the answer reports success. */
  request(request: ApiRequest, signal: AbortSignal): Promise<Answer>
  /** Where the API serves the kind of an object, from API discovery. */
  kindOf(object: Pick<KubeObject, 'apiVersion' | 'kind'>, signal: AbortSignal): Promise<Kind>
}

/** A client on a transport. */
export function createKubeClient(options: KubeClientOptions): KubeClient {
  const context: ExchangeContext = {
    transport: options.transport,
    timeoutMs: options.timeoutMs ?? 30_000,
    maxAnswerBytes: options.maxAnswerBytes ?? 128 * 1024 ** 2,
    userAgent: options.userAgent ?? 'sallyport',
  }
  const lookup = new KindLookup(context, options.kinds ?? [])
  const send = async (kind: Kind, request: ApiRequest, signal: AbortSignal) =>
    asKubeObject(await exchangeJson(context, request, signal), kind)
  return {
    get: (kind, key, signal) => getObject(context, kind, key, signal),
    list: (kind, query, signal) => listObjects(context, kind, query, signal),
    watch: (kind, query, signal) => watchObjects(context, kind, query, signal),
    create: async (kind, object, { subresource }, signal) => {
      const path = subresource
        ? objectPath(kind, object.metadata, subresource)
        : creationPath(kind, object.metadata.namespace)
      return send(kind, { method: 'POST', path, body: object }, signal)
    },
    update: async (kind, object, { subresource, ...preconditions }, signal) => {
      const path = objectPath(kind, object.metadata, subresource)
      const metadata = { ...object.metadata, ...statedPreconditions(preconditions) }
      return send(kind, { method: 'PUT', path, body: { ...object, metadata } }, signal)
    },
    delete: async (kind, key, preconditions, signal) => {
      const body = {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        preconditions: statedPreconditions(preconditions),
      }
      const request = { method: 'DELETE', path: objectPath(kind, key), body }
      const answer = await exchangeJson(context, request, signal)
      return isStatus(answer) ? undefined : asKubeObject(answer, kind)
    },
    review: async (kind, object, signal) => {
      const { path, body } = reviewRequest(kind, object)
      return send(reviewKind(kind), { method: 'POST', path, body }, signal)
    },
    request: (request, signal) => exchange(context, request, signal),
    kindOf: (object, signal) => lookup.kindOf(object, signal),
  }
}

async function getObject(
  context: ExchangeContext,
  kind: Kind,
  key: Key,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const request = { method: 'GET', path: objectPath(kind, key) }
  try {
    return asKubeObject(await exchangeJson(context, request, signal), kind)
  } catch (error) {
    if (saysAbsent(error, key)) return undefined
    throw error
  }
}

/** A 404 that names no object means that the server does not serve the kind, or is no API server. */
const saysAbsent = (error: unknown, key: Key): boolean =>
  error instanceof ApiError && error.reason === 'NotFound' && error.details?.name === key.name
