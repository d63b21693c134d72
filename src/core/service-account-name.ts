import { wellKnown } from './auth.ts'

const part = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?'
const accountName = new RegExp(`^(${part}):(${part}(?:\\.${part})*)$`)

/** Namespace and name of the service account that a user name is, if it is one. */
export function serviceAccountOf(username: string) {
  if (!username.startsWith(wellKnown.serviceAccountUserPrefix)) return undefined
  const parts = accountName.exec(username.slice(wellKnown.serviceAccountUserPrefix.length))
  const [, namespace = '', name = ''] = parts ?? []
  if (name === '' || namespace.length > 63 || name.length > 253) return undefined
  return { namespace, name }
}
