import {
  apiVersionOf,
  type ClusterView,
  hasReason,
  isRecord,
  type Key,
  type Kind,
  type KubeObject,
  type ObjectList,
  type Preconditions,
  type Query,
  type ReviewKind,
  wellKnownKinds,
} from '../core/index.ts'
import { AnswerInvalid } from './errors.ts'
import { collectionPath, creationPath, objectPath } from './kinds.ts'
import { type ExchangeContext, exchangeJson } from './request.ts'

type NamedKind = Pick<Kind, 'group' | 'version' | 'kind'>

const isKubeObject = (value: Record<string, unknown>): value is KubeObject =>
  typeof value['kind'] === 'string' &&
  typeof value['apiVersion'] === 'string' &&
  isRecord(value['metadata']) &&
  typeof value['metadata']['name'] === 'string'

/**
 * What the server sent, as an object of `kind`. Items of a list leave out kind and apiVersion, and
 * reviews and bookmarks have no name.
 */
export function asKubeObject(value: unknown, kind: NamedKind): KubeObject {
  const sent = isRecord(value) ? value : {}
  if (isRecord(sent['metadata'])) {
    const whole: Record<string, unknown> = {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      ...sent,
      metadata: { name: '', ...sent['metadata'] },
    }
    if (isKubeObject(whole)) return whole
  }
  throw new AnswerInvalid(`the server sent something else than an object of kind ${kind.kind}`)
}

const pageSize = 500

/** The parameters by which a list or watch selects. */
export function selectionParameters(query: Query): URLSearchParams {
  const parameters = new URLSearchParams()
  if (query.labelSelector) parameters.set('labelSelector', query.labelSelector)
  if (query.fieldSelector) parameters.set('fieldSelector', query.fieldSelector)
  return parameters
}

/** Everything that `query` means, at one version, read in pages. */
export async function listObjects(
  context: ExchangeContext,
  kind: Kind,
  query: Query,
  signal: AbortSignal,
): Promise<ObjectList> {
  try {
    return await listPages(context, kind, query, signal)
  } catch (error) {
    // History has moved on between two pages. One answer without pages cannot expire.
    if (!hasReason(error, 'Expired')) throw error
    const { items, resourceVersion } = await readPage(
      context,
      { kind, query, limit: 0, from: '' },
      signal,
    )
    return { items, resourceVersion }
  }
}

async function listPages(
  context: ExchangeContext,
  kind: Kind,
  query: Query,
  signal: AbortSignal,
): Promise<ObjectList> {
  const items: ObjectList['items'] = []
  let from = ''
  for (;;) {
    const page = await readPage(context, { kind, query, limit: pageSize, from }, signal)
    for (const item of page.items) items.push(item)
    if (page.next === '') return { items, resourceVersion: page.resourceVersion }
    if (page.next === from)
      throw new AnswerInvalid(`${context.transport.server} sends the same page again and again`)
    from = page.next
  }
}

interface Page extends ObjectList {
  /** Where the next page begins; empty on the last one. */
  readonly next: string
}

async function readPage(
  context: ExchangeContext,
  wanted: {
    readonly kind: Kind
    readonly query: Query
    readonly limit: number
    readonly from: string
  },
  signal: AbortSignal,
): Promise<Page> {
  const { kind, limit, from } = wanted
  const query = selectionParameters(wanted.query)
  if (limit > 0) query.set('limit', String(limit))
  if (from) query.set('continue', from)
  const path = collectionPath(kind, wanted.query.namespace)
  const { metadata, items } = await exchangeJson(context, { method: 'GET', path, query }, signal)
  const { resourceVersion, continue: next } = isRecord(metadata) ? metadata : {}
  if (typeof resourceVersion !== 'string' || !(items === null || Array.isArray(items)))
    throw new AnswerInvalid(`${context.transport.server} did not send a list of ${kind.resource}`)
  return {
    items: (items ?? []).map((item) => asKubeObject(item, kind)),
    resourceVersion,
    next: typeof next === 'string' ? next : '',
  }
}

/** Only the preconditions that are given: an empty one would never hold. */
export const statedPreconditions = (given: {
  readonly resourceVersion?: string | undefined
  readonly uid?: string | undefined
}): Preconditions => ({
  ...(given.resourceVersion !== undefined && { resourceVersion: given.resourceVersion }),
  ...(given.uid !== undefined && { uid: given.uid }),
})

const maxAttempts = 10

/**
 * Changes an object, or creates it, whoever else is writing it: whoever loses a race reads again and
 * decides anew. `change` gets the object as it is and returns what it is to be; `undefined` leaves
 * it alone. True when something was written.
 */
export async function changeObject(
  { view, kind, key }: { readonly view: ClusterView; readonly kind: Kind; readonly key: Key },
  change: (
    present: KubeObject | undefined,
  ) => KubeObject | undefined | Promise<KubeObject | undefined>,
  signal: AbortSignal,
): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    const present = await view.get(kind, key, signal)
    const wanted = await change(present)
    if (!wanted) return false
    const { resourceVersion } = present?.metadata ?? {}
    try {
      if (!present) await view.write('create', wanted, {}, signal)
      else await view.write('update', wanted, statedPreconditions({ resourceVersion }), signal)
      return true
    } catch (error) {
      const lostRace = hasReason(error, 'AlreadyExists', 'Conflict', 'NotFound')
      if (!lostRace || attempt === maxAttempts) throw error
    }
  }
}

const authentication = { group: 'authentication.k8s.io', version: 'v1' } as const
const authorization = { group: 'authorization.k8s.io', version: 'v1' } as const

const groupVersionOf: Readonly<Record<ReviewKind, Pick<Kind, 'group' | 'version'>>> = {
  TokenReview: authentication,
  SelfSubjectReview: authentication,
  TokenRequest: authentication,
  SubjectAccessReview: authorization,
  LocalSubjectAccessReview: authorization,
  SelfSubjectAccessReview: authorization,
  SelfSubjectRulesReview: authorization,
}

/** Where the API serves a review. */
export const reviewKind = (kind: ReviewKind): Kind => ({
  ...groupVersionOf[kind],
  kind,
  resource: `${kind.toLowerCase()}s`,
  namespaced: kind === 'LocalSubjectAccessReview',
})

/** Path and body of a review; a TokenRequest is named after its service account. */
export function reviewRequest(
  kind: ReviewKind,
  object: KubeObject,
): { readonly path: string; readonly body: KubeObject } {
  const { metadata } = object
  const resource = reviewKind(kind)
  const path =
    kind === 'TokenRequest'
      ? objectPath(wellKnownKinds.serviceAccount, metadata, 'token')
      : creationPath(resource, metadata.namespace)
  return { path, body: { ...object, kind, apiVersion: apiVersionOf(resource) } }
}
