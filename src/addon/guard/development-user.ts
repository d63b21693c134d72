import type { IncomingMessage } from 'node:http'
import { rawHeaderValues } from '../../http/index.ts'
import type { AddonUser } from '../token/claims.ts'

const loopback = /^(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/
const loopbackHost = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i
const minuteMs = 60_000

type Request = Pick<IncomingMessage, 'rawHeaders' | 'socket' | 'method'>

/**
 * The user of a developer's own machine: only for a request that comes from loopback to loopback under a name of
 * loopback, that nobody has forwarded, that no page of another origin makes and that brings no token. Of what comes to
 * a Pod in a cluster, only port forwarding looks like that.
 */
export function developmentUser(
  { rawHeaders, socket, method }: Request,
  user: string,
  now: number,
): AddonUser | undefined {
  const { remoteAddress = '', localAddress = '' } = socket
  if (!loopback.test(remoteAddress) || !loopback.test(localAddress)) return undefined
  const [host = '', ...others] = rawHeaderValues(rawHeaders, 'host')
  // A page of the internet that a browser was made to believe lives here has another name.
  if (others.length > 0 || !loopbackHost.test(host)) return undefined
  const isForwarded = rawHeaders.some(
    (name, index) =>
      index % 2 === 0 && /^(?:authorization|forwarded|via|x-forwarded-.*)$/i.test(name),
  )
  if (isForwarded || isForeign(rawHeaders, { host, method })) return undefined
  return { user, groups: [], audience: 'development', expiresAt: now + minuteMs }
}

/** Any page on the internet can make a browser ask here; a link may lead here all the same. */
function isForeign(
  rawHeaders: readonly string[],
  { host, method }: { readonly host: string; readonly method: string | undefined },
): boolean {
  const own = [`http://${host}`, `https://${host}`].map((origin) => origin.toLowerCase())
  const origins = rawHeaderValues(rawHeaders, 'origin')
  if (!origins.every((origin) => own.includes(origin.toLowerCase()))) return true
  const site = rawHeaderValues(rawHeaders, 'sec-fetch-site')
  if (site.every((said) => said === 'same-origin' || said === 'none')) return false
  const isLink =
    (method === 'GET' || method === 'HEAD') &&
    rawHeaderValues(rawHeaders, 'sec-fetch-mode').join() === 'navigate' &&
    rawHeaderValues(rawHeaders, 'sec-fetch-dest').join() === 'document'
  return !isLink
}
