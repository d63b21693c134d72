import { randomUUID } from 'node:crypto'
import { type Admission, type Clock, type Logger, silentLogger } from '../../core/index.ts'
import type { Store } from '../../storage/index.ts'
import { service } from '../kinds/service/service.ts'
import { decodeObject, storePrefix } from './object-bytes.ts'
import { noLimits, type QuotaLimits, QuotaStore } from './quota.ts'
import { AdmissionChain, type RegistryContext } from './registry.ts'
import { ServiceAddresses } from './service-addresses.ts'

/** What a registry of objects is made of. */
export interface RegistryParts {
  readonly store: Store
  readonly clock: Clock
  /** The ranges that Services get their addresses from: one, or one of each family. */
  readonly serviceCidrs: readonly [string, ...string[]]
  /** Run on every write, in this order; without them no write is accepted until `context.admissions.set`. */
  readonly admissions?: readonly Admission[]
  /** How much may be stored; without any limit unless given. */
  readonly limits?: QuotaLimits
  readonly log?: Logger
}

/** The registry of all kinds on a store. */
export function openRegistry({
  store,
  clock,
  serviceCidrs,
  admissions,
  limits = noLimits,
  log = silentLogger,
}: RegistryParts): RegistryContext {
  const services = store
    .range(storePrefix(service.kind, {}))
    .runs.flatMap((run) => run.map((record) => decodeObject(service.kind, record)))
  return {
    store,
    quota: new QuotaStore(store, limits, log),
    clock,
    admissions: new AdmissionChain(admissions),
    hooks: [new ServiceAddresses(serviceCidrs, services)],
    newUid: randomUUID,
  }
}
