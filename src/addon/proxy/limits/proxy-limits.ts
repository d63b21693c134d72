import { ApiError, goQuote, type KubeObject, parseDuration } from '../../../core/index.ts'

/** How much one user may use of the proxy. */
export interface ProxyLimits {
  readonly requestsPerSecond: number
  /** Requests that may come at once after a pause. */
  readonly requestBurst: number
  /** Requests at a time. */
  readonly maxRequests: number
  /** Upgraded connections at a time. */
  readonly maxTunnels: number
  /** In each direction, over all connections together. */
  readonly bytesPerSecond: number
  readonly maxRequestMs: number
  readonly maxTunnelMs: number
  /** How long nothing may pass. */
  readonly idleMs: number
}

/** How the text of an annotation is read, and what a person should have written. */
interface Reading {
  readonly form: string
  readonly read: (text: string) => number | undefined
}

const readNumber = (text: string): number | undefined =>
  /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined

const unit: Readonly<Record<string, number>> = { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 }

function readBytes(text: string): number | undefined {
  const [, number = '', suffix = ''] = /^(\d+)(Ki|Mi|Gi)?$/.exec(text) ?? []
  const count = readNumber(number)
  return count && count * (unit[suffix] ?? 1)
}

function readDuration(text: string): number | undefined {
  const ms = parseDuration(text)
  return ms !== undefined && ms > 0 ? ms : undefined
}

const wholeNumber: Reading = { form: 'a number of 1 or more', read: readNumber }
const bytes: Reading = { form: 'a size such as 64Ki', read: readBytes }
const duration: Reading = { form: 'a duration such as 30s', read: readDuration }

const limitName = /^sallyport\.dev\/proxy-/

/** The annotations by which a Service asks for tighter limits, how each is read and what it limits. */
const limitAnnotations: ReadonlyMap<
  string,
  { readonly limit: keyof ProxyLimits; readonly reading: Reading }
> = new Map([
  ['sallyport.dev/proxy-requests-per-second', { limit: 'requestsPerSecond', reading: wholeNumber }],
  ['sallyport.dev/proxy-request-burst', { limit: 'requestBurst', reading: wholeNumber }],
  ['sallyport.dev/proxy-max-requests', { limit: 'maxRequests', reading: wholeNumber }],
  ['sallyport.dev/proxy-max-tunnels', { limit: 'maxTunnels', reading: wholeNumber }],
  ['sallyport.dev/proxy-bytes-per-second', { limit: 'bytesPerSecond', reading: bytes }],
  ['sallyport.dev/proxy-max-request-age', { limit: 'maxRequestMs', reading: duration }],
  ['sallyport.dev/proxy-max-tunnel-age', { limit: 'maxTunnelMs', reading: duration }],
  ['sallyport.dev/proxy-idle-timeout', { limit: 'idleMs', reading: duration }],
])

/**
 * The limits for one Service: what its annotations ask for within the operator's bounds, or `undefined` when it asks
 * for nothing. One that is not known or cannot be read is a 503: whoever wrote it meant a limit.
 */
export function limitsOfService(service: KubeObject, bounds: ProxyLimits): ProxyLimits | undefined {
  let limits: ProxyLimits | undefined
  for (const [name, text] of Object.entries(service.metadata.annotations ?? {})) {
    if (!limitName.test(name)) continue
    const known = limitAnnotations.get(name)
    const value = known?.reading.read(text)
    if (!known || value === undefined) throw unreadable(service, name, known?.reading)
    limits = { ...(limits ?? bounds), [known.limit]: Math.min(value, bounds[known.limit]) }
  }
  return limits
}

function unreadable(service: KubeObject, name: string, reading: Reading | undefined): ApiError {
  const text = goQuote(service.metadata.annotations?.[name] ?? '')
  const why = reading
    ? `has a limit that cannot be read: ${name}: ${text} is not ${reading.form}`
    : `has a limit that is not known: ${name}`
  return new ApiError('ServiceUnavailable', `service ${goQuote(service.metadata.name)} ${why}`)
}
