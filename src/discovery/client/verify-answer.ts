import { TokenRefused } from '../../jose/index.ts'
import { verifySignature } from '../signing/detached-signature.ts'
import type { BootstrapToken } from '../tokens/bootstrap-token.ts'
import { clockRemark } from './clock-offset.ts'
import { type ClusterInfoMap, readClusterInfoMap } from './cluster-info-map.ts'
import { DiscoveryFailed } from './discovery-failed.ts'
import type { RawAnswer } from './https-get.ts'

/** The header with the signature of a whole answer. */
const signatureHeader = 'x-kubernetes-jws'
const longestSignature = 4096

/** Whose answer it is, and with what it must be signed. */
export interface Expected {
  /** Host and port. */
  readonly place: string
  readonly token: BootstrapToken
}

/** The document of an answer that is signed as a whole: checked byte by byte first, read only then. */
export function fromSignedAnswer(answer: RawAnswer, expected: Expected): string {
  const [signature, second] = answer.values(signatureHeader)
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
  answer: RawAnswer,
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
  { headers }: RawAnswer,
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
export function isSigned(answer: RawAnswer, expected: Expected): boolean {
  const [signature, second] = answer.values(signatureHeader)
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
  if (signature.length > longestSignature) throw wrong(expected, 'the signature is too long')
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
