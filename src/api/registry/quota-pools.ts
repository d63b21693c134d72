import { goQuote, nodeNameReservations, revocationListKey } from '../../core/index.ts'
import { certificateSigningRequest } from '../kinds/certificate-signing-request.ts'
import { configMap } from '../kinds/config-map.ts'
import { endpointSlice } from '../kinds/endpoint-slice.ts'
import { endpoints } from '../kinds/endpoints.ts'
import { event } from '../kinds/event.ts'
import { node } from '../kinds/node.ts'
import { storePrefix } from './object-bytes.ts'

const { namespace: reservationNamespace, namePrefix: reservationName } = nodeNameReservations

/** The list of revoked users and credentials: administrators write it however full the store is. */
export const revocationsKey =
  storePrefix(configMap.kind, { namespace: revocationListKey.namespace }) + revocationListKey.name

/** Where keys of certificate signing requests begin. */
export const requestPrefix = storePrefix(certificateSigningRequest.kind, {})

/** All certificate signing requests. */
export const requestPool = '/certificatesigningrequests'
const derivedPool = '/endpoints'

/** Objects that are counted apart, so that users who cause them do not keep those out who write other objects. */
const separatePools = [
  { prefix: storePrefix(event.kind, {}), suffix: '/events', label: 'events of' },
  {
    prefix: storePrefix(configMap.kind, { namespace: reservationNamespace }) + reservationName,
    suffix: '/node-names',
    label: 'node names in',
  },
  { prefix: requestPrefix, suffix: requestPool, label: 'certificate signing requests of' },
  { prefix: storePrefix(node.kind, {}), suffix: '/nodes', label: 'nodes of' },
  { prefix: storePrefix(endpoints.kind, {}), suffix: derivedPool, label: 'endpoints of' },
  { prefix: storePrefix(endpointSlice.kind, {}), suffix: derivedPool, label: 'endpoints of' },
] as const

/** What a key is counted with: its namespace, nothing for objects of the cluster, or a separate pool of either. */
export function poolOf(key: string): string {
  const begin = key.indexOf('/', key.indexOf('/') + 1) + 1
  const end = key.indexOf('/', begin)
  const namespace = end < 0 ? '' : key.slice(begin, end)
  const { suffix = '' } = separatePools.find(({ prefix }) => key.startsWith(prefix)) ?? {}
  return namespace + suffix
}

/** No namespace has a slash in its name. */
export const namespaceOfPool = (pool: string): string => pool.split('/', 1)[0] ?? ''

const requesterPrefix = `${requestPool}/`

/** The certificate signing requests of one user, which are in `requestPool` as well. */
export const requesterPool = (username: string): string => requesterPrefix + username
export const isRequesterPool = (pool: string): boolean => pool.startsWith(requesterPrefix)

/** The server writes these in the number that Services and Pods of users ask for. */
export const isDerivedPool = (pool: string): boolean =>
  pool.endsWith(derivedPool) && !isRequesterPool(pool)

/** A pool in the words of messages. */
export function placeOf(pool: string): string {
  if (isRequesterPool(pool)) return `user ${goQuote(pool.slice(requesterPrefix.length))}`
  const namespace = namespaceOfPool(pool)
  const { label } = separatePools.find(({ suffix }) => pool.endsWith(suffix)) ?? {}
  if (namespace === '') return label ? `${label} the cluster` : "the cluster's own objects"
  return `${label ? `${label} ` : ''}namespace ${goQuote(namespace)}`
}
