import { isIP } from 'node:net'
import { WrongUsage } from '../../core/index.ts'
import type { Place } from './upstream.ts'

/** Where a guard is to listen, and for whom. */
interface Places {
  readonly addresses: readonly string[]
  readonly ports: readonly { readonly listenPort: number; readonly forward: Place }[]
  readonly health?: { readonly port: number }
}

/** Refuses, in words, what could not work or would open more than the Pod's own addresses. */
export function checkPlaces({ addresses, ports, health }: Places): void {
  const wildcard = addresses.find((address) => /^(?:::ffff:)?[0:.]+$/i.test(address))
  if (wildcard !== undefined || addresses.length === 0)
    throw new WrongUsage(
      'the guard listens on the addresses of its Pod only, never on all: give --listen-address, or POD_IP by the downward API',
    )
  const unfit = addresses.find((address) => isIP(address) === 0)
  if (unfit !== undefined)
    throw new WrongUsage(
      `the guard listens on IP addresses, and ${JSON.stringify(unfit)} is none: see --listen-address, POD_IPS and POD_IP`,
    )
  const circle = ports.find(
    ({ listenPort, forward }) =>
      listenPort === forward.port && addresses.some((address) => address === forward.host),
  )
  if (circle)
    throw new WrongUsage(
      `the guard would forward ${circle.forward.host}:${circle.listenPort} to itself: let the add-on listen on another port, or the guard on another address`,
    )
  const taken = [...ports.map(({ listenPort }) => listenPort), ...(health ? [health.port] : [])]
  const twice = taken.find((port, index) => port !== 0 && taken.indexOf(port) !== index)
  if (twice !== undefined)
    throw new WrongUsage(
      `the guard would listen on port ${twice} twice: each of --forward, --listen-port and --health-port needs a port of its own`,
    )
}
