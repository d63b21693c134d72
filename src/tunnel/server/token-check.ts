import { type ClusterView, isRecord, SallyportError } from '../../core/index.ts'
import { AgentRefused, AgentUnjudged } from './errors.ts'

/** Which tokens are an agent's. */
export interface TokenCheckParts {
  readonly view: ClusterView
  readonly namespace: string
  readonly serviceAccount: string
  readonly audience: string
}

type Metadata = Readonly<Record<string, readonly string[]>>

/** Lets an agent in, or throws AgentRefused. */
export type AgentCheck = (metadata: Metadata, signal: AbortSignal) => Promise<void>

/** What a refused agent hears, whatever was wrong: the log has the rest. */
const heard = 'the agent could not be authenticated'
const refused = (detail: string): AgentRefused => new AgentRefused(heard, { detail })

const scheme = 'Bearer '

/** A check of service-account tokens by TokenReview; throws AgentUnjudged when there is no review. */
export function createTokenCheck(parts: TokenCheckParts): AgentCheck {
  const expected = `system:serviceaccount:${parts.namespace}:${parts.serviceAccount}`
  return async (metadata, signal) => {
    const status = await review(parts, bearerIn(metadata), signal)
    if (status['error'] !== undefined && status['error'] !== '') {
      throw refused(`the token review failed: ${JSON.stringify(status['error'])}`)
    }
    if (status['authenticated'] !== true) throw refused('the token is not authentic')
    // A reviewer that knows no audiences has not checked ours.
    const audiences = Array.isArray(status['audiences']) ? status['audiences'] : []
    if (!audiences.includes(parts.audience)) {
      throw refused(`the token was not found good for the audience ${parts.audience}`)
    }
    const username = isRecord(status['user']) ? status['user']['username'] : undefined
    if (username !== expected) {
      throw refused(`the token is of ${JSON.stringify(username)}, not of ${expected}`)
    }
  }
}

/** The token in an agent's metadata; throws AgentRefused. */
export function bearerIn(metadata: Metadata): string {
  const values = metadata['authorization'] ?? []
  const [value] = values
  if (value === undefined) throw refused('there is no authorization in the metadata')
  if (values.length > 1) throw refused('there is more than one authorization in the metadata')
  if (!value.startsWith(scheme)) throw refused('the authorization is no Bearer token')
  const token = value.slice(scheme.length)
  if (token === '') throw refused('the Bearer token is empty')
  return token
}

async function review(
  { view, audience }: TokenCheckParts,
  token: string,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const question = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: { name: '' },
    spec: { token, audiences: [audience] },
  }
  try {
    const { status } = await view.review('TokenReview', question, signal)
    return isRecord(status) ? status : {}
  } catch (error) {
    const why = error instanceof SallyportError ? error.message : 'unexpected failure'
    const detail = `the token could not be reviewed: ${why}`
    throw new AgentUnjudged(heard, { detail, cause: error })
  }
}
