import { isIP } from 'node:net'
import { problemOfUserName, WrongUsage } from '../../core/index.ts'
import { foldHeaderName } from '../../http/index.ts'
import type { TrustOptions } from './authenticate.ts'
import { defaultOutput, emittedNames, type IdentityOutput } from './identity-output.ts'
import type { Place } from './upstream.ts'

const headerName = /^[A-Za-z][\w-]*$/

/** By these a request is framed, led, or proved: with a name of ours in them it would be another one. */
const taken = new Set([
  'authorization',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-forwarded-for',
])

/** What is wrong with the names of headers by which an add-on is told its user, each as one sentence. */
export function problemsOfOutput(output: IdentityOutput): string[] {
  const names = emittedNames(output)
  const folded = names.map(foldHeaderName)
  const isOurs = (name: string): boolean =>
    output.impersonation === true && name.startsWith('impersonate-')
  return names.flatMap((name, index) => {
    const plain = folded[index] ?? ''
    if (!headerName.test(name)) return [`"${name}" is not the name of a header`]
    if (taken.has(plain)) return [`the header ${name} has another purpose and can tell no user`]
    if (folded.indexOf(plain) !== index) return [`the header ${name} would tell two things`]
    return isOurs(plain) ? [`the header ${name} is one of those of impersonation`] : []
  })
}

/** Options as an application may have written them. */
interface Unchecked extends TrustOptions {
  readonly audiences?: unknown
  readonly output?: IdentityOutput
  readonly developmentUser?: string
  readonly maxTunnelMs?: unknown
}

const serviceName = /^[a-z\d-]+\/[a-z\d-]+$/

/** Refuses, in words, what would let nobody in: an application in plain JavaScript has no types to tell. */
export function checkMiddleware(options: Unchecked): void {
  const problem = problemOf(options)
  if (problem !== undefined) throw new WrongUsage(`createGuard: ${problem}`)
}

function problemOf(options: Unchecked = {}): string | undefined {
  const { developmentUser, maxTunnelMs = 1, x5c, handshake, jwks, output = defaultOutput } = options
  if (!areAudiences(options.audiences))
    return "audiences must list the Services of this application, such as ['kube-system/dashboard']"
  if (isBadName(developmentUser)) return 'developmentUser must be a name'
  if (x5c === false && !handshake && !jwks && developmentUser === undefined)
    return 'x5c is switched off and neither handshake nor jwks is there: nobody would be believed'
  if (!isDuration(maxTunnelMs)) return 'maxTunnelMs must be a number of milliseconds'
  const [unfit] = problemsOfOutput(output)
  return unfit === undefined ? undefined : `output: ${unfit}`
}

const isBadName = (name: string | undefined): boolean =>
  name !== undefined && problemOfUserName(name) !== undefined

const isDuration = (ms: unknown): boolean => Number.isSafeInteger(ms) && Number(ms) > 0

function areAudiences(audiences: unknown): boolean {
  if (!Array.isArray(audiences))
    return typeof audiences === 'object' && audiences !== null && 'has' in audiences
  const isService = (name: unknown): boolean => typeof name === 'string' && serviceName.test(name)
  return audiences.length > 0 && audiences.every(isService)
}

/** Where a guard is to listen, and for whom. */
interface Places {
  readonly addresses: readonly string[]
  readonly ports: readonly { readonly listenPort: number; readonly forward: Place }[]
  readonly health?: { readonly port: number }
}

/** Says in words what could not work or would open more than the Pod's own addresses. */
export const problemsOfPlaces = (places: Places): string[] => [
  ...problemsOfAddresses(places.addresses),
  ...problemsOfForwarding(places),
  ...problemsOfPorts(places),
]

/** Refuses such places. */
export function checkPlaces(places: Places): void {
  const problems = problemsOfPlaces(places)
  if (problems.length > 0) throw new WrongUsage(problems.join('; '))
}

const wildcard = /^(?:::ffff:)?[0:.]+$/i

function problemsOfAddresses(addresses: readonly string[]): string[] {
  const isOpen = addresses.length === 0 || addresses.some((address) => wildcard.test(address))
  const unfit = addresses.filter((address) => isIP(address) === 0 && !wildcard.test(address))
  return [
    ...(isOpen
      ? [
          'the guard listens on the addresses of its Pod only, never on all: give --listen-address, or POD_IP by the downward API',
        ]
      : []),
    ...unfit.map(
      (address) =>
        `the guard listens on IP addresses, and ${JSON.stringify(address)} is none: see --listen-address, POD_IPS and POD_IP`,
    ),
  ]
}

function problemsOfForwarding({ addresses, ports }: Places): string[] {
  return ports
    .filter(
      ({ listenPort, forward }) =>
        listenPort === forward.port && addresses.some((address) => address === forward.host),
    )
    .map(
      ({ listenPort, forward }) =>
        `the guard would forward ${forward.host}:${listenPort} to itself: let the add-on listen on another port, or the guard on another address`,
    )
}

function problemsOfPorts({ ports, health }: Places): string[] {
  const taken = [...ports.map(({ listenPort }) => listenPort), ...(health ? [health.port] : [])]
  const twice = taken.filter((port, index) => port !== 0 && taken.indexOf(port) !== index)
  return [...new Set(twice)].map(
    (port) =>
      `the guard would listen on port ${port} twice: each of --forward, --listen-port and --health-port needs a port of its own`,
  )
}
