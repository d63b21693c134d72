import type { ServerResponse } from 'node:http'
import {
  type Attributes,
  type Authentication,
  type AuthorizedRequest,
  isProxied,
  type Kind,
  methodNotAllowed,
  notServed,
  type RequestInfo,
} from '../../core/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { kindDefinitions } from '../kinds/index.ts'
import { runBytes } from '../registry/object-bytes.ts'
import type { RegistryContext } from '../registry/registry.ts'
import { type ReviewSources, reviewResources } from '../reviews/index.ts'
import {
  type ApiCall,
  explainStoreFailure,
  ownerOf,
  type ServedResource,
  servedResources,
  warn,
} from './call.ts'
import { handleDelete, handleDeleteCollection } from './delete.ts'
import { handleGet } from './get.ts'
import { handleList } from './list.ts'
import { CompressedRuns, RunCache } from './list-cache.ts'
import type { RequestBodies } from './request-bodies.ts'
import { handleReview } from './review.ts'
import { handleWatch, type WatchLimits } from './watch.ts'
import { handleCreate, handlePatch, handleUpdate } from './write.ts'

/** A resource or subresource that a feature serves itself, such as `serviceaccounts/token`. */
export type ResourceHandler = (
  request: AuthorizedRequest,
  response: ServerResponse,
  signal: AbortSignal,
) => Promise<void>

/** A resource or subresource that is served by a handler of its own, not from the registry. */
export interface VirtualResource {
  /** As API discovery shows them; OPTIONS comes with a proxy. */
  readonly verbs: readonly string[]
  readonly namespaced: boolean
  readonly handle: ResourceHandler
}

/** What the resource API works with. */
export interface ResourceApiDeps {
  readonly context: RegistryContext
  readonly reviews: ReviewSources
  readonly bodies: RequestBodies
  /** Where the CPU time of handlers is charged. */
  readonly cpu: { charge(owner: string, ms: number): void }
  /** Throws a 403 for what a request turns out to be, where that is more than its URL says. */
  readonly requireAllowed: (
    authentication: Authentication,
    attributes: Attributes,
    signal: AbortSignal,
  ) => Promise<void>
  readonly watchLimits: WatchLimits
  /** Bytes of rendered lists that are kept for the next reader. */
  readonly listCacheBytes: number
  /** By `group/version/resource/subresource`. */
  readonly virtual: ReadonlyMap<string, VirtualResource>
}

type Handler = (call: ApiCall) => Promise<void>

function handlersOf({
  listCacheBytes,
  watchLimits,
}: Pick<ResourceApiDeps, 'listCacheBytes' | 'watchLimits'>): ReadonlyMap<string, Handler> {
  const plain = new RunCache(listCacheBytes, runBytes)
  const caches = { plain, compressed: new CompressedRuns(plain) }
  return new Map<string, Handler>([
    ['get', handleGet],
    ['list', (call) => handleList(call, caches)],
    ['watch', (call) => handleWatch(call, watchLimits)],
    ['create', handleCreate],
    ['update', handleUpdate],
    ['patch', handlePatch],
    ['delete', handleDelete],
    ['deletecollection', handleDeleteCollection],
  ])
}

/** Serves every stored kind and every review over HTTP. */
export class ResourceApi {
  readonly #deps: ResourceApiDeps
  readonly #served: ReadonlyMap<string, ServedResource>
  readonly #handlers: ReadonlyMap<string, Handler>

  constructor(deps: ResourceApiDeps) {
    this.#deps = deps
    this.#served = servedResources(kindDefinitions)
    this.#handlers = handlersOf(deps)
  }

  /** Serves one authorized resource request; throws an ApiError to reject it. */
  handle(
    authorized: AuthorizedRequest,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const { info } = authorized
    const path = `${info.group}/${info.version}/${info.resource}`
    const resource = this.#served.get(path)
    if (!resource || info.subresource !== '') {
      const virtual = this.#deps.virtual.get(`${path}/${info.subresource}`)
      if (virtual) {
        checkVirtual(virtual, info)
        return virtual.handle(authorized, response, signal)
      }
    }
    if (!resource) return this.#review(authorized, response, signal)
    const handler = this.#handlers.get(info.verb)
    if (!handler) throw methodNotAllowed()
    checkPath(resource.definition, info)
    const call = this.#call(authorized, resource, response, signal)
    const { deprecation } = resource.definition
    if (deprecation !== undefined) warn(call, [deprecation])
    const startedAt = performance.now()
    const handling = handler(call)
    this.#deps.cpu.charge(call.owner, performance.now() - startedAt)
    return handling.catch((error: unknown) => {
      throw explainStoreFailure(error)
    })
  }

  #call(
    { request, info, authentication }: AuthorizedRequest,
    resource: ServedResource,
    response: ServerResponse,
    signal: AbortSignal,
  ): ApiCall {
    return {
      context: this.#deps.context,
      resource,
      info,
      user: authentication.user,
      request,
      response,
      signal,
      bodies: this.#deps.bodies,
      owner: ownerOf(authentication),
      requireVerb: (verb) => {
        const attributes = { user: authentication.user, verb, resource: info }
        return this.#deps.requireAllowed(authentication, attributes, signal)
      },
    }
  }

  async #review(
    { request, info, authentication }: AuthorizedRequest,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const review = reviewResources.find(
      ({ group, version, resource }) =>
        group === info.group && version === info.version && resource === info.resource,
    )
    if (!review || info.subresource || info.name) throw notServed()
    if (review.namespaced !== (info.namespace !== '')) throw notServed()
    if (info.verb !== 'create') throw methodNotAllowed()
    await handleReview({
      review,
      sources: this.#deps.reviews,
      info,
      user: authentication.user,
      request,
      response,
      signal,
      bodies: this.#deps.bodies,
      owner: ownerOf(authentication),
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

/** The path of a namespace says its name twice; rights inside of one reach no other by `/namespaces/a/namespaces/b`. */
const isNamespaceItself = ({ resource, name, namespace }: RequestInfo): boolean =>
  resource === 'namespaces' && name === namespace

/** Throws 404 or 405 for a scope or verb that a virtual resource does not declare; to be called before its handler. */
export function checkVirtual(
  { namespaced, verbs }: Pick<VirtualResource, 'namespaced' | 'verbs'>,
  info: RequestInfo,
): void {
  const inNamespace = info.namespace !== ''
  const isOneObject = info.subresource !== '' || ofOneObject.has(info.verb)
  if (namespaced ? isOneObject && !inNamespace : inNamespace) throw notServed()
  if (!verbs.includes(info.verb) && !(info.verb === 'options' && isProxied(info)))
    throw methodNotAllowed()
}

/** Refuses paths that Kubernetes does not have, and verbs that a path does not have. */
function checkPath(definition: KindDefinition, info: RequestInfo): void {
  const { kind, verbs, subresources } = definition
  const inNamespace = info.namespace !== '' && !isNamespaceItself(info)
  const isOneObject = ofOneObject.has(info.verb) && info.name !== ''
  if (kind.namespaced ? isOneObject && !inNamespace : inNamespace) throw notServed()
  if (info.subresource === '') {
    if (isMisplaced(kind, info) || (verbs && !verbs.includes(info.verb))) throw methodNotAllowed()
    return
  }
  const subresource = subresources.find(({ name }) => name === info.subresource)
  if (!subresource) throw notServed()
  if (!subresource.verbs.includes(info.verb)) throw methodNotAllowed()
}
