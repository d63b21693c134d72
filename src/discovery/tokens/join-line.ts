import { type BootstrapToken, tokenText } from './bootstrap-token.ts'

/** What a machine needs to join. */
export interface JoinInvitation {
  /** URL of the API. */
  readonly server: string
  /** The pin of every root of the cluster. */
  readonly pins: readonly string[]
  /** Whether the roots of the joining system count as well: no pin covers those, so our line has none. */
  readonly systemRoots?: boolean
  readonly token: BootstrapToken
  /** The only node that may join with it, so the machine must take this name. */
  readonly nodeName?: string
}

const kubernetesSecretLength = 16

/** The command by which a machine joins with Sallyport. */
export function joinLine(invitation: JoinInvitation): string {
  const { server, systemRoots = false } = invitation
  const { pathname, protocol } = new URL(server)
  const address = pathname === '/' && protocol === 'https:' ? hostAndPort(server) : server
  const pins = systemRoots ? [] : invitation.pins
  return ['sallyport join', address, ...flagsOf({ ...invitation, pins })].join(' ')
}

/** The command by which a machine joins with kubeadm; undefined if kubeadm cannot. */
export function kubeadmJoinLine(invitation: JoinInvitation): string | undefined {
  const { server, pins, token } = invitation
  const canRead =
    new URL(server).pathname === '/' && token.secret.reveal().length === kubernetesSecretLength
  if (!canRead || pins.length === 0) return undefined
  return ['kubeadm join', hostAndPort(server), ...flagsOf(invitation)].join(' ')
}

function hostAndPort(server: string): string {
  const { hostname, port } = new URL(server)
  return `${hostname}:${port || 443}`
}

const flagsOf = ({ token, pins, nodeName }: JoinInvitation): string[] => [
  '--token',
  tokenText(token).reveal(),
  ...pins.flatMap((pin) => ['--discovery-token-ca-cert-hash', pin]),
  ...(nodeName === undefined ? [] : ['--node-name', nodeName]),
]
