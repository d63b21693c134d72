import { type BootstrapToken, tokenText } from './bootstrap-token.ts'

/** What a machine needs to join. */
export interface JoinInvitation {
  /** URL of the API. */
  readonly server: string
  /** The pin of every root of the cluster. */
  readonly pins: readonly string[]
  readonly token: BootstrapToken
}

const kubernetesSecretLength = 16

/** The command by which a machine joins with Sallyport. */
export function joinLine({ server, pins, token }: JoinInvitation): string {
  const { pathname, protocol } = new URL(server)
  const address = pathname === '/' && protocol === 'https:' ? hostAndPort(server) : server
  return ['sallyport join', address, '--token', tokenText(token).reveal(), ...pinFlags(pins)].join(
    ' ',
  )
}

/** The command by which a machine joins with kubeadm; undefined if kubeadm cannot. */
export function kubeadmJoinLine({ server, pins, token }: JoinInvitation): string | undefined {
  const canRead =
    new URL(server).pathname === '/' && token.secret.reveal().length === kubernetesSecretLength
  if (!canRead || pins.length === 0) return undefined
  const address = hostAndPort(server)
  return ['kubeadm join', address, '--token', tokenText(token).reveal(), ...pinFlags(pins)].join(
    ' ',
  )
}

function hostAndPort(server: string): string {
  const { hostname, port } = new URL(server)
  return `${hostname}:${port || 443}`
}

const pinFlags = (pins: readonly string[]): string[] =>
  pins.flatMap((pin) => ['--discovery-token-ca-cert-hash', pin])
