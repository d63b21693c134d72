import type { IncomingMessage, ServerResponse } from 'node:http'
import { ApiError, type AuthorizedRequest, type Kind, type RequestInfo } from '../../core/index.ts'
import type { KindDefinition } from '../kinds/kind-definition.ts'
import { runBytes } from '../registry/object-bytes.ts'
import type { RegistryContext } from '../registry/registry-context.ts'
import { type ReviewSources, reviewResources } from '../reviews/index.ts'
import type { ApiCall } from './api-call.ts'
import { handleDelete, handleDeleteCollection } from './delete-request.ts'
import { ObjectEvents } from './event-bytes.ts'
import { CompressedRuns } from './gzip-runs.ts'
import { handleList, type ListCaches } from './read-list.ts'
import { handleGet } from './read-object.ts'
import { handleReview } from './review-request.ts'
import { RunCache } from './run-cache.ts'
import { type ServedResource, servedResources } from './served-resource.ts'
import { explainStoreFailure } from './store-failures.ts'
import { warn } from './warn.ts'
import { handleWatch, type WatchLimits } from './watch-request.ts'
import { handleCreate, handlePatch, handleUpdate } from './write-object.ts'

/** A resource or subresource that a feature serves itself, such as `serviceaccounts/token`. */
export type ResourceHandler = (
  request: AuthorizedRequest,
  response: ServerResponse,
  signal: AbortSignal,
) => Promise<void>

/** What the resource API is made of. */
export interface ResourceApiParts {
  readonly context: RegistryContext
  readonly reviews: ReviewSources
  readonly readBody: (request: IncomingMessage, signal: AbortSignal) => Promise<Buffer>
  readonly watchLimits: WatchLimits
  /** Bytes of rendered lists that are kept for the next reader. */
  readonly listCacheBytes: number
  /** By `group/version/resource/subresource`, asked before anything else. */
  readonly extensions: ReadonlyMap<string, ResourceHandler>
}

const notServed = (): ApiError =>
  new ApiError('NotFound', 'the server could not find the requested resource', { details: {} })
const notAllowed = (): ApiError =>
  new ApiError(
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    { details: {} },
  )

type Verb = (call: ApiCall, api: ResourceApi) => Promise<void>

const verbs: Readonly<Record<string, Verb>> = {
  get: (call) => handleGet(call),
  list: (call, api) => handleList(call, api.listCaches),
  watch: (call, api) => handleWatch(call, api.eventsOf(call.resource), api.watchLimits),
  create: (call) => handleCreate(call),
  update: (call) => handleUpdate(call),
  patch: (call) => handlePatch(call),
  delete: (call) => handleDelete(call),
  deletecollection: (call) => handleDeleteCollection(call),
}

/** Serves every stored kind and every review over HTTP. */
export class ResourceApi {
  readonly #parts: ResourceApiParts
  readonly #served: ReadonlyMap<string, ServedResource>
  readonly #events = new Map<ServedResource, ObjectEvents>()
  readonly listCaches: ListCaches

  constructor(parts: ResourceApiParts) {
    this.#parts = parts
    this.#served = servedResources(parts.context.definitions)
    const plain = new RunCache(parts.listCacheBytes, runBytes)
    this.listCaches = { plain, compressed: new CompressedRuns((run) => plain.get(run)) }
  }

  get watchLimits(): WatchLimits {
    return this.#parts.watchLimits
  }

  /** The encoder that all watchers of a resource share. */
  eventsOf(resource: ServedResource): ObjectEvents {
    const known = this.#events.get(resource)
    if (known) return known
    const events = new ObjectEvents(resource.definition.kind, resource.bytes)
    this.#events.set(resource, events)
    return events
  }

  /** Answers one authorized resource request; throws an ApiError for what it refuses. */
  handle(
    authorized: AuthorizedRequest,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const { info } = authorized
    const path = `${info.group}/${info.version}/${info.resource}`
    const extension = this.#parts.extensions.get(`${path}/${info.subresource}`)
    if (extension) return extension(authorized, response, signal)
    const resource = this.#served.get(path)
    if (!resource) return this.#review(authorized, response, signal)
    const call = this.#call(authorized, resource, response, signal)
    const { deprecation } = resource.definition
    if (deprecation !== undefined) warn(call, [deprecation])
    return verbFor(resource, info)(call, this).catch((error: unknown) => {
      throw explainStoreFailure(error)
    })
  }

  #call(
    authorized: AuthorizedRequest,
    resource: ServedResource,
    response: ServerResponse,
    signal: AbortSignal,
  ): ApiCall {
    const { request, info } = authorized
    return {
      context: this.#parts.context,
      resource,
      info,
      user: authorized.authentication.user,
      request,
      response,
      signal,
      readBody: () => this.#parts.readBody(request, signal),
    }
  }

  async #review(
    authorized: AuthorizedRequest,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const { info, request } = authorized
    const review = reviewResources.find(
      ({ group, version, resource }) =>
        group === info.group && version === info.version && resource === info.resource,
    )
    if (!review || info.subresource || info.name) throw notServed()
    if (review.namespaced !== (info.namespace !== '')) throw notServed()
    if (info.verb !== 'create') throw notAllowed()
    await handleReview({
      review,
      sources: this.#parts.reviews,
      info,
      user: authorized.authentication.user,
      request,
      response,
      signal,
      readBody: () => this.#parts.readBody(request, signal),
    })
  }
}

/** Verbs on one object, which has a name and, if its kind has namespaces, is in one. */
const ofOneObject: ReadonlySet<string> = new Set(['get', 'update', 'patch', 'delete'])

/** True for a verb that a path without or with a name, or without a namespace, does not have. */
function isMisplaced(kind: Kind, { verb, name, namespace }: RequestInfo): boolean {
  const isPlaced = !kind.namespaced || namespace !== ''
  if (verb === 'create') return name !== '' || !isPlaced
  if (verb === 'deletecollection') return !isPlaced
  return ofOneObject.has(verb) && name === ''
}

/** Refuses paths that Kubernetes does not have, and verbs that a path does not have. */
function checkPath({ kind, verbs: served }: KindDefinition, info: RequestInfo): void {
  const inNamespace = info.namespace !== '' && info.resource !== 'namespaces'
  const isOneObject = ofOneObject.has(info.verb) && info.name !== ''
  if (kind.namespaced ? isOneObject && !inNamespace : inNamespace) throw notServed()
  if (info.subresource !== '') return
  if (isMisplaced(kind, info) || (served && !served.includes(info.verb))) throw notAllowed()
}

function verbFor({ definition }: ServedResource, info: RequestInfo): Verb {
  const verb = verbs[info.verb]
  if (!verb) throw notAllowed()
  checkPath(definition, info)
  if (info.subresource === '') return verb
  const subresource = definition.subresources.find(({ name }) => name === info.subresource)
  if (!subresource) throw notServed()
  if (!subresource.verbs.includes(info.verb)) throw notAllowed()
  return verb
}
