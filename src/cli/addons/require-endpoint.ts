import { type ClusterView, isRecord, wellKnownKinds } from '../../core/index.ts'

/** Rejects while a Service has no endpoint that is ready: asking its page then would be told of as a failure. */
export async function requireEndpoint(
  view: ClusterView,
  { namespace, service }: { readonly namespace: string; readonly service: string },
  signal: AbortSignal,
): Promise<void> {
  const query = { namespace, labelSelector: `kubernetes.io/service-name=${service}` }
  const { items } = await view.list(wellKnownKinds.endpointSlice, query, signal)
  const endpoints = items.flatMap((slice): unknown[] =>
    Array.isArray(slice['endpoints']) ? slice['endpoints'] : [],
  )
  if (!endpoints.some(isReady)) throw new Error(`the Service ${service} has no endpoint yet`)
}

const isReady = (endpoint: unknown): boolean => {
  const conditions = isRecord(endpoint) ? endpoint['conditions'] : undefined
  return isRecord(conditions) && conditions['ready'] === true
}
