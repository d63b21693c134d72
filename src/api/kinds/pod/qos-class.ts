import { quantityNanos } from '../../validation/quantity.ts'
import { type Fields, fieldsAt, recordsAt } from '../fields.ts'

type Amounts = Map<string, bigint>

function amountsIn(resources: Fields, key: string): Amounts {
  const found: Amounts = new Map()
  for (const name of ['cpu', 'memory']) {
    const nanos = quantityNanos(fieldsAt(resources, key)[name]) ?? 0n
    if (nanos > 0n) found.set(name, nanos)
  }
  return found
}

function addTo(total: Amounts, more: Amounts): void {
  for (const [name, nanos] of more) total.set(name, (total.get(name) ?? 0n) + nanos)
}

/** How safe a pod's resources are: `Guaranteed`, `Burstable` or `BestEffort`. */
export function qosClassOf(spec: Fields): string {
  const containers = [...recordsAt(spec, 'containers'), ...recordsAt(spec, 'initContainers')]
  const own = fieldsAt(spec, 'resources')
  const parts =
    Object.keys(own).length > 0 ? [own] : containers.map((one) => fieldsAt(one, 'resources'))
  const [requests, limits]: [Amounts, Amounts] = [new Map(), new Map()]
  let isBounded = true
  for (const part of parts) {
    const partLimits = amountsIn(part, 'limits')
    if (partLimits.size < 2) isBounded = false
    addTo(requests, amountsIn(part, 'requests'))
    addTo(limits, partLimits)
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort'
  const isEqual =
    requests.size === limits.size &&
    [...requests].every(([name, nanos]) => limits.get(name) === nanos)
  return isBounded && isEqual ? 'Guaranteed' : 'Burstable'
}
