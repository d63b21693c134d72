import { randomInt } from 'node:crypto'
import { SallyportError, Secret } from '../../core/index.ts'

/** A short shared secret with a public name: `id.secret`. */
export interface BootstrapToken {
  readonly id: string
  readonly secret: Secret
}

/** A text is not a token; the message repeats none of it. */
export class BootstrapTokenInvalid extends SallyportError {
  readonly code = 'TOKEN_MALFORMED'
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
const idLength = 6
const secretLength = 16
/** The block size of HMAC-SHA-256: longer secrets add no security. */
const maxSecretLength = 64

const idForm = /^[a-z0-9]{6}$/
const form = /^([a-z0-9]{6})\.([a-z0-9]{16,64})$/

/** Whether a text has the form of a token's public name. */
export const isTokenId = (text: string): boolean => idForm.test(text)

/** Whether a text has the form of a whole token, so that it is meant as one. */
export const looksLikeToken = (text: string): boolean => form.test(text)

/** Reads a token; throws BootstrapTokenInvalid that says what is wrong without repeating it. */
export function parseBootstrapToken(text: string): BootstrapToken {
  const [, id, secret] = form.exec(text) ?? []
  if (id !== undefined && secret !== undefined) return { id, secret: new Secret(secret) }
  throw new BootstrapTokenInvalid(`the token is not of the form id.secret: ${whatIsWrong(text)}`)
}

function whatIsWrong(text: string): string {
  const parts = text.split('.')
  const [id = '', secret = ''] = parts
  if (parts.length !== 2) return `it has ${parts.length - 1} dots instead of one`
  if (/\s/.test(text)) return 'it has spaces or line ends in it'
  if (/[^a-z0-9.]/.test(text)) return 'only small letters a to z and digits may be in it'
  if (id.length !== idLength)
    return `the part before the dot has ${id.length} letters instead of ${idLength}`
  return `the part after the dot has ${secret.length} letters instead of ${secretLength} to ${maxSecretLength}`
}

/** The token as text; only for where it is used or shown on purpose. */
export const tokenText = ({ id, secret }: BootstrapToken): Secret =>
  new Secret(`${id}.${secret.reveal()}`)

/** A new token of Kubernetes' form, every letter equally likely; a longer secret if asked for. */
export function generateBootstrapToken(length = secretLength): BootstrapToken {
  return { id: randomText(idLength), secret: new Secret(randomText(length)) }
}

const randomText = (length: number): string =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')

/** Why a secret that somebody chose is easier to guess than it looks; undefined if it is not. */
export function weaknessOf({ secret }: BootstrapToken): string | undefined {
  const text = secret.reveal()
  if (new Set(text).size < 6) return 'its secret has very few different letters'
  if (/^[0-9]+$/.test(text)) return 'its secret has digits only'
  if (text.length <= secretLength && /^[0-9a-f]+$/.test(text))
    return 'its secret has hexadecimal digits only, which makes 64 bits'
  if (/(.{2,8})\1/.test(text)) return 'its secret repeats itself'
  return undefined
}

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
