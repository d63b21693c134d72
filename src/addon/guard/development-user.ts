import type { IncomingMessage } from 'node:http'
import { rawHeaderValues } from '../../http/index.ts'
import type { AddonUser } from '../token/addon-claims.ts'

const loopback = /^(?:127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/
const loopbackHost = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i
const minuteMs = 60_000

/**
 * The user of a developer's own machine: only for a request that comes from loopback to loopback under a name of
 * loopback, that nobody has forwarded and that brings no token. In a cluster none does.
 */
export function developmentUser(
  { rawHeaders, socket }: Pick<IncomingMessage, 'rawHeaders' | 'socket'>,
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
  if (isForwarded) return undefined
  return { user, groups: [], audience: 'development', expiresAt: now + minuteMs }
}
