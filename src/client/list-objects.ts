import { hasReason, isRecord, type Kind, type ObjectList, type Query } from '../core/index.ts'
import { AnswerInvalid } from './client-errors.ts'
import { type ExchangeContext, exchangeJson } from './exchange.ts'
import { asKubeObject } from './kube-object-check.ts'
import { collectionPath } from './resource-path.ts'

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
