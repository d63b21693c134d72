import { networkInterfaces } from 'node:os'
import type { GuardOptions, PortPair } from '../addon/guard/index.ts'
import { CommandFailed } from '../core/index.ts'
import { type GuardValues, parsePortPair } from './guard-options.ts'
import type { Io } from './io.ts'

/** Where a guard listens, and for whom. */
export type GuardPlaces = Required<Pick<GuardOptions, 'addresses' | 'ports' | 'health'>>

/** Reads the places from the options and the Pod's own addresses. */
export function placesOf(values: GuardValues, io: Io): GuardPlaces {
  const { healthPort: port, probePath } = values
  return {
    addresses: listenAddresses(values, io),
    ports: portPairs(values),
    health: { port, ...(probePath !== undefined && { probePath }) },
  }
}

function portPairs({ forward, listenPort, forwardIp, forwardPort }: GuardValues): PortPair[] {
  if (forward.length === 0) return [{ listenPort, forward: { host: forwardIp, port: forwardPort } }]
  return forward.flatMap((text) => {
    const pair = parsePortPair(text)
    if (!pair) return []
    return [
      { listenPort: pair.listenPort, forward: { host: pair.host ?? forwardIp, port: pair.port } },
    ]
  })
}

/** Specific addresses only: the add-on may listen on the same port of loopback. */
function listenAddresses({ listenAddress, listenOnPodIp }: GuardValues, io: Io): readonly string[] {
  if (listenAddress.length > 0) return listenAddress
  if (!listenOnPodIp)
    throw new CommandFailed(
      'NO_LISTEN_ADDRESS',
      "the Pod's addresses are not wanted, nor is another",
      {
        hint: 'give --listen-address, or leave --listen-on-pod-ip as it is',
      },
    )
  const told = (io.env['POD_IPS'] || io.env['POD_IP'] || '').split(',').map((text) => text.trim())
  const given = told.filter((address) => address !== '')
  if (given.length > 0) return given
  const own = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, scopeid }) => !internal && !scopeid)
    .map(({ address }) => address)
  if (own.length > 0) return own
  throw new CommandFailed('NO_LISTEN_ADDRESS', "the Pod's addresses are not known", {
    hint: 'set POD_IP from status.podIP by the downward API, or give --listen-address',
  })
}
