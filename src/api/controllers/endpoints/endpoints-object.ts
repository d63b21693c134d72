import type { KubeObject } from '../../../core/index.ts'
import { recordsAt } from '../../kinds/fields.ts'
import { jsonEqual } from '../../patch/json-value.ts'
import { endpointSubsets, isOverCapacity, truncated } from './endpoint-subsets.ts'
import type { PodInfo } from './pod-info.ts'
import type { ServiceInfo } from './service-info.ts'
import { sliceLabels } from './slice-object.ts'

const managedByLabel = 'endpoints.kubernetes.io/managed-by'
const managedBy = 'endpoint-controller'
const overCapacity = 'endpoints.kubernetes.io/over-capacity'

/** Whether an Endpoints object was made from a Service's selector. */
export const isManaged = (endpoints: KubeObject): boolean =>
  endpoints.metadata.labels?.[managedByLabel] === managedBy

function labelsOf(service: ServiceInfo): Record<string, string> {
  const { [sliceLabels.headless]: _, ...own } = service.labels
  return {
    ...own,
    ...(service.headless && { [sliceLabels.headless]: '' }),
    [managedByLabel]: managedBy,
  }
}

/** The Endpoints that a Service should have; the very same when that is what it has. */
export function endpointsObject(
  service: ServiceInfo,
  pods: Iterable<PodInfo>,
  existing: KubeObject | undefined,
): KubeObject {
  const all = endpointSubsets(service, pods)
  const subsets = truncated(all)
  const labels = labelsOf(service)
  const metadata = existing?.metadata ?? { name: service.name, namespace: service.namespace }
  const { [overCapacity]: marked, ...others } = metadata.annotations ?? {}
  const over = isOverCapacity(all)
  if (
    existing !== undefined &&
    jsonEqual(recordsAt(existing, 'subsets'), subsets) &&
    jsonEqual(metadata.labels ?? {}, labels) &&
    (marked === 'truncated') === over
  ) {
    return existing
  }
  return {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {
      ...metadata,
      labels,
      annotations: over ? { ...others, [overCapacity]: 'truncated' } : others,
    },
    subsets,
  }
}
