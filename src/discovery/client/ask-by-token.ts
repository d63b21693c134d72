import type { Clock } from '../../core/index.ts'
import { mintDiscoveryJwt } from '../signing/discovery-jwt.ts'
import type { BootstrapToken } from '../tokens/bootstrap-token.ts'
import { clockOffset } from './clock-offset.ts'
import { clusterInfoPath } from './cluster-info-map.ts'
import { connectionFailure } from './connection-failure.ts'
import type { GetOrder, GetTerms, RawAnswer } from './https-get.ts'
import { refusedAnswer } from './refused-answer.ts'
import { fromSignedAnswer, fromSignedDocument, isSigned } from './verify-answer.ts'

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
  readonly terms: GetTerms
}

/** A document that was signed with the token. */
export interface TokenAnswer {
  readonly kubeconfig: string
  /** What carried the signature: the answer itself, or the document in it. */
  readonly proof: 'signed-answer' | 'signed-document'
}

type Get = (order: GetOrder) => Promise<RawAnswer>

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
    question.terms.log.trace({ offsetMs }, 'signed request refused, asking without a credential')
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
  { address, terms }: TokenQuestion,
  get: Get,
  headers: Readonly<Record<string, string>>,
): Promise<RawAnswer> {
  try {
    return await get({ url: `${address}${clusterInfoPath}`, headers, ...terms })
  } catch (error) {
    throw connectionFailure(address, error, terms.signal)
  }
}

const placeOf = ({ address }: TokenQuestion): string => new URL(address).host
