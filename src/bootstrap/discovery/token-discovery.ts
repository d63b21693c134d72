import type { Clock } from '../../core/index.ts'
import type { FetchedDocument } from '../../http/fetch/index.ts'
import type { BootstrapToken } from '../tokens/bootstrap-token.ts'
import { mintDiscoveryJwt } from '../tokens/signature.ts'
import { apiServerItself, connectionFailure, DiscoveryFailed } from './errors.ts'
import type { DiscoveryRequest, RequestContext } from './requests.ts'
import {
  clockOffset,
  clockRemark,
  clusterInfoPath,
  fromSignedAnswer,
  fromSignedDocument,
  isSigned,
} from './verify.ts'

/** Who asked whom, for the sentence. */
interface Asked {
  /** Host and port. */
  readonly place: string
  readonly tokenId: string
  /** Signed with the token, or without any credential. */
  readonly how: 'signed' | 'anonymous'
  readonly offsetMs: number | undefined
  /** The refusal itself is signed with the token, so it is the cluster's own word. */
  readonly authentic: boolean
}

const anotherToken =
  'make a new one with `sallyport token create` (or `kubeadm token create`) and use it whole'

/** What an answer with another status than 200 means. */
function refusedAnswer(answer: FetchedDocument, asked: Asked): DiscoveryFailed {
  const { status } = answer
  if (status === 401) return authRefused(asked)
  if (status === 403) return forbidden(asked)
  if (status === 404)
    return new DiscoveryFailed(
      'not-a-cluster',
      `${asked.place} has no cluster-info (404): it is no Kubernetes API server, or nobody has prepared it for joining yet`,
      {
        hint: 'check address and port; a cluster of kubeadm gets it with `kubeadm init phase bootstrap-token`',
        mayPass: true,
      },
    )
  if (status === 429 || status >= 500)
    return new DiscoveryFailed('not-ready', `${asked.place} is not ready (${status})`, {
      hint:
        status === 429
          ? 'too many requests, or too many with wrong tokens, came from this address: it is listened to again within a minute'
          : 'the server, or a load balancer before it, is starting or has too much to do',
      mayPass: true,
      retryAfterMs: retryAfter(answer),
    })
  return new DiscoveryFailed(
    'not-a-cluster',
    `${asked.place} answered ${status}, which no API server does here`,
    {
      hint: apiServerItself,
    },
  )
}

function authRefused({ place, tokenId, how, offsetMs }: Asked): DiscoveryFailed {
  const clock = clockRemark(offsetMs)
  const refusal =
    how === 'signed'
      ? `refused the request that was signed with token ${tokenId} (401): the token is unknown, expired or mistyped, or the server knows no signed requests`
      : `refused the request that was signed with token ${tokenId}, and one without a credential as well (401): the token is unknown, expired or mistyped`
  return new DiscoveryFailed('auth-refused', `${place} ${refusal}${clock}`, {
    hint:
      clock === ''
        ? `${anotherToken}; an API server other than Sallyport must let anonymous requests read cluster-info`
        : 'set the clock first, for example by NTP: a signed request is valid for one minute',
    // The token may be made, or the clock be set, a moment after this machine has started.
    mayPass: true,
    passesSoon: true,
  })
}

function forbidden({ place, tokenId, how, authentic }: Asked): DiscoveryFailed {
  return how === 'signed'
    ? new DiscoveryFailed(
        'forbidden',
        `${place} knows token ${tokenId} but does not let it find the cluster (403)`,
        {
          hint: 'the token needs the usages signing and authentication: see `sallyport token list`',
          mayPass: !authentic,
          passesSoon: true,
        },
      )
    : new DiscoveryFailed(
        'forbidden',
        `${place} does not let requests without a credential read cluster-info (403)`,
        {
          hint: 'bind the role kubeadm:bootstrap-signer-clusterinfo in kube-public to system:anonymous, as `kubeadm init phase bootstrap-token` does',
          mayPass: true,
        },
      )
}

function retryAfter({ headers }: FetchedDocument): number {
  const seconds = Number(headers['retry-after'])
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 60) * 1000 : 0
}

/** What is asked of one address. */
export interface TokenQuestion {
  /** An https URL without a slash at its end. */
  readonly address: string
  readonly token: BootstrapToken
  /** Never be content with the signature inside the document. */
  readonly requireJwt: boolean
  /** What the server is known to understand; found out unless given. */
  readonly how?: 'signed' | 'anonymous'
  readonly clock: Clock
  readonly context: RequestContext
}

/** A document that was signed with the token. */
export interface TokenAnswer {
  readonly kubeconfig: string
  /** What carried the signature: the answer itself, or the document in it. */
  readonly proof: 'signed-answer' | 'signed-document'
}

type Get = (request: DiscoveryRequest) => Promise<FetchedDocument>

/**
 * Asks once for the document: by a signed request, and if the server knows no such thing, without a
 * credential. The token itself is not sent; nothing is returned that is not signed with it.
 */
export async function askByToken(question: TokenQuestion, get: Get): Promise<TokenAnswer> {
  if (question.how === 'anonymous') return askOpenly(question, get)
  const { token, clock } = question
  const jwt = mintDiscoveryJwt(token, clock.now())
  const answer = await ask(question, get, { authorization: `Bearer ${jwt}` })
  const expected = { place: placeOf(question), token }
  if (answer.status === 200)
    return { kubeconfig: fromSignedAnswer(answer, expected), proof: 'signed-answer' }
  const offsetMs = clockOffset(answer, clock.now())
  // Every other API server refuses a credential of a kind that it does not know.
  if (answer.status === 401 && !question.requireJwt && question.how === undefined) {
    question.context.log.trace({ offsetMs }, 'signed request refused, asking without a credential')
    return askOpenly(question, get, offsetMs)
  }
  const { place } = expected
  const authentic = isSigned(answer, expected)
  throw refusedAnswer(answer, { place, tokenId: token.id, offsetMs, authentic, how: 'signed' })
}

async function askOpenly(
  question: TokenQuestion,
  get: Get,
  knownOffsetMs?: number,
): Promise<TokenAnswer> {
  const { token, clock } = question
  const place = placeOf(question)
  const answer = await ask(question, get, {})
  const offsetMs = knownOffsetMs ?? clockOffset(answer, clock.now())
  if (answer.status === 200) {
    const kubeconfig = fromSignedDocument(answer, { place, token, offsetMs })
    return { kubeconfig, proof: 'signed-document' }
  }
  const asked = { place, tokenId: token.id, offsetMs, authentic: false }
  throw refusedAnswer(answer, { ...asked, how: 'anonymous' })
}

async function ask(
  { address, context }: TokenQuestion,
  get: Get,
  headers: Readonly<Record<string, string>>,
): Promise<FetchedDocument> {
  try {
    return await get({ url: `${address}${clusterInfoPath}`, headers, ...context })
  } catch (error) {
    throw connectionFailure(address, error, context.signal)
  }
}

const placeOf = ({ address }: TokenQuestion): string => new URL(address).host
