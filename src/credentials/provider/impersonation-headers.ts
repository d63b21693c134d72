import type { Impersonation } from '../../kubeconfig/index.ts'
import type { ClusterRequest } from '../cluster-request.ts'

/** The headers that ask the server to treat a request as somebody else's. */
export function impersonationHeaders(impersonation: Impersonation): ClusterRequest['headers'] {
  const { username, uid, groups = [], extra = {} } = impersonation
  const extras = Object.entries(extra).map(
    ([key, values]) => [`impersonate-extra-${escapeKey(key)}`, values] as const,
  )
  return {
    ...(username !== undefined && { 'impersonate-user': username }),
    ...(uid !== undefined && { 'impersonate-uid': uid }),
    ...(groups.length > 0 && { 'impersonate-group': groups }),
    ...Object.fromEntries(extras),
  }
}

/** A name may hold what a header's name cannot: the server undoes percent-encoding. */
const escapeKey = (key: string): string =>
  key.toLowerCase().replaceAll(/[^!#$&'*+\-.^_`|~0-9a-z]/g, (character) => encodeBytes(character))

const encodeBytes = (character: string): string =>
  [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('')
