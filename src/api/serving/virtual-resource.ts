import type { ServerResponse } from 'node:http'
import {
  ApiError,
  type AuthorizedRequest,
  apiVersionOf,
  badRequest,
  type Clock,
  type Kind,
  type KubeObject,
  longestTimerMs,
  methodNotAllowed,
  notFound,
  toKubeStatus,
} from '../../core/index.ts'
import { reportUnread } from '../../http/index.ts'
import type { Column } from '../kinds/define-kind.ts'
import { type RequestCall, wantsPretty } from './call.ts'
import type { ResourceHandler, VirtualResource } from './resource-api.ts'
import { type ResponseForm, responseForm, sendValue, streamForm } from './response.ts'
import { renderTable, toPartialObjectMetadata } from './table.ts'
import { includeObject } from './views.ts'
import { watchQueryOf } from './watch.ts'

/** A change of a live object. */
export interface LiveEvent {
  readonly type: 'ADDED' | 'DELETED'
  readonly object: KubeObject
}

/** Objects that are nowhere stored: they are what is going on, and deleting one ends it. */
export interface LiveResource {
  readonly kind: Kind
  readonly columns: readonly Column[]
  /** The moment that a list shows. */
  readonly revision: number
  /** Of one namespace, or of all if it is empty. */
  list(namespace: string): KubeObject[]
  get(namespace: string, name: string): KubeObject | undefined
  /** Ends it; false if there is none. */
  end(namespace: string, name: string): boolean
  /** Tells of all changes after a revision; `undefined` when that is too long ago. */
  follow(after: number, listener: (event: LiveEvent) => void): (() => void) | undefined
}

/** One call, with what is needed to answer it. */
interface LiveCall {
  readonly resource: LiveResource
  readonly clock: Clock
  readonly request: RequestCall
}

/** Serves live objects as Kubernetes serves stored ones: get, list, watch and delete, tables included. */
export function liveResourceHandler(resource: LiveResource, clock: Clock): ResourceHandler {
  return async (authorized, response, signal) => {
    const call = { resource, clock, request: requestCallOf(authorized, response, signal) }
    switch (authorized.info.verb) {
      case 'get':
        return sendObject(call)
      case 'list':
        return sendList(call)
      case 'watch':
        return sendWatch(call)
      case 'delete':
        return endObject(call)
      default:
        throw methodNotAllowed()
    }
  }
}

const requestCallOf = (
  { request, info, authentication }: AuthorizedRequest,
  response: ServerResponse,
  signal: AbortSignal,
): RequestCall => ({
  info,
  user: authentication.user,
  request,
  response,
  signal,
})

const isSelectable =
  /^(?:metadata\.(?:name|namespace)={1,2}[^=!,]*)(?:,metadata\.(?:name|namespace)={1,2}[^=!,]*)*$/

/** The objects that the URL and its selectors mean. */
function selected({ resource, request: { info } }: LiveCall): (object: KubeObject) => boolean {
  const fields = info.query.get('fieldSelector') ?? ''
  if ((info.query.get('labelSelector') ?? '') !== '')
    throw badRequest(`${resource.kind.resource} have no labels to select by`)
  if (fields !== '' && !isSelectable.test(fields))
    throw badRequest(
      `${resource.kind.resource} are selected by metadata.name and metadata.namespace only`,
    )
  const wanted = fields.split(',').map((term) => term.split(/={1,2}/))
  return ({ metadata }) =>
    (info.name === '' || metadata.name === info.name) &&
    (info.namespace === '' || metadata.namespace === info.namespace) &&
    wanted.every(
      ([field, value]) =>
        (field !== 'metadata.name' || metadata.name === value) &&
        (field !== 'metadata.namespace' || metadata.namespace === value),
    )
}

async function sendObject(call: LiveCall): Promise<void> {
  const { resource, request } = call
  const { namespace, name } = request.info
  const form = responseForm(request.request.headers.accept)
  const object = resource.get(namespace, name)
  if (!object) throw notFound(resource.kind, name)
  await send(call, form, viewOf(call, form, [object], object))
}

async function sendList(call: LiveCall): Promise<void> {
  const { resource, request } = call
  const form = responseForm(request.request.headers.accept)
  const { revision } = resource
  const items = resource.list(request.info.namespace).filter(selected(call))
  const whole = {
    kind: `${resource.kind.kind}List`,
    apiVersion: apiVersionOf(resource.kind),
    metadata: { resourceVersion: String(revision) },
    items,
  }
  await send(call, form, viewOf(call, form, items, whole))
}

const send = ({ request }: LiveCall, form: ResponseForm, value: unknown): Promise<void> =>
  sendValue(request.response, 200, value, {
    encoding: form.encoding,
    pretty: wantsPretty(request),
  })

function viewOf(
  { resource, clock, request }: LiveCall,
  { view }: ResponseForm,
  objects: readonly KubeObject[],
  whole: { readonly metadata: { readonly resourceVersion?: string } },
): unknown {
  const listMeta = { resourceVersion: whole.metadata.resourceVersion ?? '' }
  if (view === 'table')
    return renderTable(resource, objects, {
      includeObject: includeObject(request),
      listMeta,
      now: clock.now(),
      includeHeaders: request.info.query.get('includeHeaders') !== 'false',
    })
  if (view === 'object') return whole
  const items = objects.map(toPartialObjectMetadata)
  if (!('items' in whole)) return items[0]
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    metadata: listMeta,
    items,
  }
}

async function endObject({ resource, request }: LiveCall): Promise<void> {
  const { namespace, name } = request.info
  if (request.info.query.has('dryRun')) throw badRequest('ending one cannot be tried')
  if (!resource.end(namespace, name)) throw notFound(resource.kind, name)
  const details = { name, group: resource.kind.group, kind: resource.kind.resource }
  const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
  await sendValue(request.response, 200, status, { encoding: 'json' })
}

const expired = (): ApiError =>
  new ApiError('Expired', 'too old resource version: list again and watch from there')

async function sendWatch(call: LiveCall): Promise<void> {
  const { resource, request } = call
  const { response, signal } = request
  const query = watchQueryOf(request)
  const form = streamForm(request.request.headers.accept)
  const isWanted = selected(call)
  const write = (type: string, object: unknown): void => {
    if (!response.write(`${JSON.stringify({ type, object })}\n`)) reportUnread(response)
    if (response.writableLength > maxUnreadBytes)
      response.destroy(new Error('the client does not read its watch'))
  }
  const change = ({ type, object }: LiveEvent): void => {
    if (isWanted(object)) write(type, viewOf(call, form, [object], object))
  }
  const { revision } = resource
  const after = query.initialState ? revision : (query.after ?? revision)
  const initial = query.initialState ? resource.list(request.info.namespace) : []
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.flushHeaders()
  for (const object of initial) change({ type: 'ADDED', object })
  if (query.initialBookmark) write('BOOKMARK', bookmark(resource, revision))
  const stop = resource.follow(after, change)
  if (stop) await over(response, signal, query.timeoutSeconds)
  else write('ERROR', toKubeStatus(expired()))
  stop?.()
  response.end()
}

const bookmark = ({ kind }: LiveResource, revision: number) => ({
  kind: kind.kind,
  apiVersion: apiVersionOf(kind),
  metadata: {
    name: '',
    resourceVersion: String(revision),
    annotations: { 'k8s.io/initial-events-end': 'true' },
  },
})

/** A client that lets more than this pile up unread is cut off. */
const maxUnreadBytes = 4 * 2 ** 20

/** Half an hour is what a watch without a limit of its own lasts at least. */
const defaultSeconds = 1_800

function over(
  response: ServerResponse,
  signal: AbortSignal,
  seconds = defaultSeconds,
): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(end, Math.min((seconds || defaultSeconds) * 1_000, longestTimerMs))
    signal.addEventListener('abort', end, { once: true })
    response.once('close', end)
    if (signal.aborted) end()
  })
}

const definitions: LiveResource = {
  kind: {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    kind: 'CustomResourceDefinition',
    resource: 'customresourcedefinitions',
    namespaced: false,
  },
  columns: [],
  revision: 1,
  list: () => [],
  get: () => undefined,
  end: () => false,
  follow: () => () => {},
}

const { group, version, resource, namespaced } = definitions.kind

/**
 * Answers that nobody has defined kinds of their own, which is all there is to say here. kubectl asks for the list before it
 * creates anything that cannot be patched, such as a review, and takes a 404 for a failure. API discovery does not show it.
 */
export const noCustomKinds = (clock: Clock): [path: string, virtual: VirtualResource] => [
  `${group}/${version}/${resource}/`,
  {
    verbs: ['get', 'list', 'watch'],
    namespaced,
    handle: liveResourceHandler(definitions, clock),
  },
]
