import type { X509Certificate } from 'node:crypto'
import { type FetchedDocument, rawHeaderValues } from '../../http/fetch/index.ts'
import {
  isObject,
  type JsonObject,
  member,
  parseJsonObject,
  TokenRefused,
} from '../../jose/index.ts'
import { spkiPin } from '../../pki/trust/index.ts'
import type { BootstrapToken } from '../tokens/bootstrap-token.ts'
import { verifySignature } from '../tokens/signature.ts'
import { badArguments, DiscoveryFailed } from './errors.ts'
import { maxSignatureLength } from './limits.ts'

/** A signed request is good for a minute either way; what is less than half of it is not the reason. */
const noticeableMs = 30_000

/** How far this machine's clock is ahead of the server's by the `Date` of an answer; undefined if it does not tell. */
export function clockOffset(
  answer: Pick<FetchedDocument, 'headers'>,
  nowMs: number,
): number | undefined {
  const date = Date.parse(answer.headers.date ?? '')
  return Number.isNaN(date) ? undefined : nowMs - date
}

/** A clock that is far off in words; empty if it is right or nobody can tell. */
export function clockRemark(offsetMs: number | undefined): string {
  if (offsetMs === undefined || Math.abs(offsetMs) < noticeableMs) return ''
  const seconds = Math.round(Math.abs(offsetMs) / 1000)
  return `; this machine's clock is ${seconds} s ${offsetMs > 0 ? 'ahead of' : 'behind'} the server's`
}

/** What a cluster says of itself: the document, and its signature by one token. */
export interface ClusterInfoMap {
  /** Empty as long as nobody has written it. */
  readonly kubeconfig: string
  /** `jws-kubeconfig-<id>` of the token that was asked for. */
  readonly signature: string | undefined
  /** Whether it is signed with any other token. */
  readonly signedByOthers: boolean
  /** When it was made, by the clock of the server; not a number if it does not say. */
  readonly createdAtMs: number
}

/** The path of the ConfigMap, below the address of the API. */
export const clusterInfoPath = '/api/v1/namespaces/kube-public/configmaps/cluster-info'

const signaturePrefix = 'jws-kubeconfig-'

/** Reads the ConfigMap cluster-info and nothing else: any other body that happens to be signed is undefined. */
export function readClusterInfoMap(body: Uint8Array, tokenId: string): ClusterInfoMap | undefined {
  const map = parseJsonObject(body)
  const metadata = map && objectIn(map, 'metadata')
  if (!map || !metadata) return undefined
  const isRight =
    member(map, 'kind') === 'ConfigMap' &&
    member(map, 'apiVersion') === 'v1' &&
    member(metadata, 'namespace') === 'kube-public' &&
    member(metadata, 'name') === 'cluster-info'
  if (!isRight) return undefined
  const data = objectIn(map, 'data') ?? {}
  const kubeconfig = member(data, 'kubeconfig')
  const own = `${signaturePrefix}${tokenId}`
  const signature = member(data, own)
  return {
    kubeconfig: typeof kubeconfig === 'string' ? kubeconfig : '',
    signature: typeof signature === 'string' && signature !== '' ? signature : undefined,
    createdAtMs: Date.parse(String(member(metadata, 'creationTimestamp'))),
    signedByOthers: Object.keys(data).some(
      (name) => name.startsWith(signaturePrefix) && name !== own,
    ),
  }
}

function objectIn(parent: JsonObject, name: string): JsonObject | undefined {
  const found = member(parent, name)
  return isObject(found) ? found : undefined
}

/** The header with the signature of a whole answer. */
const signatureHeader = 'x-kubernetes-jws'

/** Whose answer it is, and with what it must be signed. */
export interface Expected {
  /** Host and port. */
  readonly place: string
  readonly token: BootstrapToken
}

/** The document of an answer that is signed as a whole: checked byte by byte first, read only then. */
export function fromSignedAnswer(answer: FetchedDocument, expected: Expected): string {
  const [signature, second] = rawHeaderValues(answer.rawHeaders, signatureHeader)
  if (signature === undefined)
    throw new DiscoveryFailed(
      'signature-absent',
      `${expected.place} accepted the signed request but did not sign its answer`,
      {
        hint: 'whatever is in between has removed X-Kubernetes-JWS, or the server is none to trust',
      },
    )
  if (second !== undefined) throw wrong(expected, 'there are two signatures')
  checkSignature(signature, answer.body, expected)
  const map = readClusterInfoMap(answer.body, expected.token.id)
  if (!map)
    throw new DiscoveryFailed(
      'document-invalid',
      `${expected.place} sent something else than cluster-info, with a signature that was made for it`,
      { hint: 'somebody may be replaying an old answer: do not go on before you know who' },
    )
  requireDocument(map, expected)
  if (map.signature !== undefined)
    checkSignature(map.signature, Buffer.from(map.kubeconfig), expected)
  return map.kubeconfig
}

/** The document of an answer in which only the document is signed, as kubeadm's clusters have it. */
export function fromSignedDocument(
  answer: FetchedDocument,
  expected: Expected & { readonly offsetMs: number | undefined },
): string {
  const { place, token, offsetMs } = expected
  const map = readClusterInfoMap(answer.body, token.id)
  if (!map)
    throw new DiscoveryFailed(
      'not-a-cluster',
      `${place} answered, but not with the cluster-info of a Kubernetes API server`,
      { hint: 'check address and port: a web server or a portal may be there instead' },
    )
  requireDocument(map, expected)
  if (map.signature === undefined)
    throw unsigned(map, answer, { place, tokenId: token.id, clock: clockRemark(offsetMs) })
  checkSignature(map.signature, Buffer.from(map.kubeconfig), expected)
  return map.kubeconfig
}

const tokenList =
  'see `sallyport token list` (or `kubeadm token list`) on the server and make a new token if it is not there'

/** In a cluster of this age whoever signs has begun long ago. */
const settledMs = 5 * 60_000

/** Where somebody signs, a token that is there is not left out for long. */
function unsigned(
  { signedByOthers, createdAtMs }: ClusterInfoMap,
  { headers }: FetchedDocument,
  asked: { readonly place: string; readonly tokenId: string; readonly clock: string },
): DiscoveryFailed {
  const { place, tokenId, clock } = asked
  // Both by the clock of the server; whoever forges them makes us give up sooner or later, and no more.
  const isSettled = Date.parse(headers.date ?? '') - createdAtMs > settledMs
  if (!signedByOthers && !isSettled)
    return new DiscoveryFailed(
      'signature-absent',
      `${place} has no signature of token ${tokenId} or any other: nobody signs there yet, or there is no token that may${clock}`,
      { hint: tokenList, mayPass: true },
    )
  const found = signedByOthers
    ? `signatures of other tokens and none of ${tokenId}`
    : `no signature of token ${tokenId} or any other, and is not new`
  return new DiscoveryFailed(
    'token-unknown',
    `${place} has ${found}: the token is unknown there, has expired or may not sign${clock}`,
    { hint: `${tokenList}; a new one has signed within seconds`, mayPass: true, passesSoon: true },
  )
}

/** Whether an answer is signed with the token, whatever it says. */
export function isSigned(answer: FetchedDocument, expected: Expected): boolean {
  const [signature, second] = rawHeaderValues(answer.rawHeaders, signatureHeader)
  if (signature === undefined || second !== undefined) return false
  try {
    checkSignature(signature, answer.body, expected)
    return true
  } catch (error) {
    if (error instanceof DiscoveryFailed) return false
    throw error
  }
}

function requireDocument({ kubeconfig }: ClusterInfoMap, { place }: Expected): void {
  if (kubeconfig !== '') return
  throw new DiscoveryFailed('document-invalid', `the cluster-info of ${place} is still empty`, {
    hint: 'nobody has written it yet: `kubeadm init phase bootstrap-token` does on a cluster of kubeadm',
    mayPass: true,
  })
}

function checkSignature(signature: string, bytes: Uint8Array, expected: Expected): void {
  if (signature.length > maxSignatureLength) throw wrong(expected, 'the signature is too long')
  try {
    verifySignature(signature, bytes, expected.token)
  } catch (error) {
    if (error instanceof TokenRefused) throw wrong(expected, error.message)
    throw error
  }
}

const wrong = ({ place, token }: Expected, why: string): DiscoveryFailed =>
  new DiscoveryFailed(
    'signature-wrong',
    `what ${place} says is not signed with token ${token.id}: ${why}`,
    {
      hint: 'compare the part of the token after the dot; if it is right, the token is of another cluster or somebody changed the answer on its way',
    },
  )

const form = /^sha256:([\da-f]{64})$/i

/** Reads the pin of a CA's public key as kubeadm writes it. */
export function parsePin(text: string): string {
  const [, hex] = form.exec(text.trim()) ?? []
  if (hex !== undefined) return `sha256:${hex.toLowerCase()}`
  throw badArguments(
    `${JSON.stringify(text)} is no pin of a CA: it must be sha256: and 64 hexadecimal digits`,
    'copy it from the join line that `sallyport token create` or `kubeadm token create --print-join-command` prints',
  )
}

/** The pin of every certificate, each once. */
export const pinsOf = (certificates: readonly X509Certificate[]): string[] => [
  ...new Set(certificates.map(spkiPin)),
]

/**
 * Every root must be pinned. If one were enough, whoever holds the token could put a root of
 * their own beside the right one, and everything would be trusted that theirs has signed.
 */
export function checkPins(
  seen: readonly string[],
  pins: readonly string[],
  systemRoots = false,
): void {
  if (pins.length === 0) return
  const strangers = seen.filter((pin) => !pins.includes(pin))
  if (seen.length > 0 && strangers.length === 0 && !systemRoots) return
  throw new DiscoveryFailed('pin-mismatch', sentence(seen, strangers), {
    hint: 'do not go on before you know why: ask the administrator for the pins of all roots of this cluster, or for a new join line',
    pinsSeen: seen,
  })
}

function sentence(seen: readonly string[], strangers: readonly string[]): string {
  if (seen.length === 0)
    return 'pins were given, but the cluster announces no CA of its own that they could fit'
  if (strangers.length === 0)
    return `the cluster wants the roots of this system to be trusted as well, which no pin covers (its own: ${seen.join(', ')})`
  if (strangers.length === seen.length)
    return `the cluster's CA has none of the pins that were given; its own: ${seen.join(', ')}`
  return `the cluster announces a root that was not pinned: ${strangers.join(', ')} (all that it announces: ${seen.join(', ')})`
}
