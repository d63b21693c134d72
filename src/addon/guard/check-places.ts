import { isIP } from 'node:net'
import { WrongUsage } from '../../core/index.ts'
import type { Place } from './upstream.ts'

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
