import { ApiError, invalid, isRecord, type Kind, type KubeObject } from '../../core/index.ts'
import { service } from '../kinds/service.ts'
import { createIpAllocator } from '../kinds/service-ip-allocator.ts'
import { toCause } from '../validation/index.ts'
import type { WriteHook } from './registry-context.ts'

type Allocator = ReturnType<typeof createIpAllocator>

const specOf = (object: KubeObject | undefined): Record<string, unknown> =>
  isRecord(object?.['spec']) ? object['spec'] : {}

/** The address that a Service holds; empty when it has none or asks for one. */
function addressOf(object: KubeObject | undefined): string {
  const address = specOf(object)['clusterIP']
  return typeof address === 'string' && address !== 'None' ? address : ''
}

const needsAddress = (draft: KubeObject): boolean => {
  const spec = specOf(draft)
  return spec['type'] !== 'ExternalName' && spec['clusterIP'] !== 'None'
}

function refuseAddress(kind: Kind, draft: KubeObject, address: string, why: string): ApiError {
  return invalid(kind, draft.metadata.name, [
    toCause({
      type: 'FieldValueInvalid',
      field: 'spec.clusterIPs',
      badValue: [address],
      detail: `failed to allocate IP ${address}: ${why}`,
    }),
  ])
}

function setAddress(draft: KubeObject, address: string): void {
  const family = address.includes(':') ? 'IPv6' : 'IPv4'
  draft['spec'] = {
    ...specOf(draft),
    clusterIP: address,
    clusterIPs: [address],
    ipFamilies: [family],
    ipFamilyPolicy: 'SingleStack',
  }
}

/** Gives each Service its address from the cluster's range, and takes it back in the end. */
export class ServiceAddresses implements WriteHook {
  readonly kind = service.kind
  readonly #cidr: string
  readonly #allocator: Allocator

  /** `existing` are the Services that hold addresses already. */
  constructor(cidr: string, existing: Iterable<KubeObject>) {
    this.#cidr = cidr
    this.#allocator = createIpAllocator(cidr)
    for (const object of existing) {
      const address = addressOf(object)
      if (address) this.#allocator.take(address)
    }
  }

  beforeStore(draft: KubeObject, stored: KubeObject | undefined): (() => void) | undefined {
    const held = addressOf(stored)
    if (!needsAddress(draft)) return undefined
    const wanted = addressOf(draft)
    if (wanted && wanted === held) return undefined
    const address = wanted ? this.#take(draft, wanted) : this.#allocate()
    setAddress(draft, address)
    return () => this.#allocator.release(address)
  }

  afterStore(draft: KubeObject, stored: KubeObject | undefined): void {
    const held = addressOf(stored)
    if (held && held !== addressOf(draft)) this.#allocator.release(held)
  }

  afterDelete(last: KubeObject): void {
    const address = addressOf(last)
    if (address) this.#allocator.release(address)
  }

  #take(draft: KubeObject, address: string): string {
    const outcome = this.#allocator.take(address)
    if (outcome === 'taken')
      throw refuseAddress(this.kind, draft, address, 'provided IP is already allocated')
    if (outcome === 'out-of-range') {
      const why = `the provided IP (${address}) is not in the valid range. The range of valid IPs is ${this.#cidr}`
      throw refuseAddress(this.kind, draft, address, why)
    }
    return address
  }

  #allocate(): string {
    const address = this.#allocator.allocate()
    if (address) return address
    throw new ApiError('InternalError', `the range of service addresses ${this.#cidr} is used up`)
  }
}
