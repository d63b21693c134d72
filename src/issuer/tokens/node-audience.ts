import {
  type Authorizer,
  goQuote,
  isRecord,
  type KubeObject,
  type UserInfo,
} from '../../core/index.ts'

/** Who asks for which audience, for which Pod of an account. */
export interface AudienceAsk {
  readonly asker: UserInfo
  readonly account: KubeObject
  readonly pod: KubeObject
  /** As the request has them; none stands for the API server. */
  readonly audiences: readonly string[]
}

/**
 * Why a node may not have a token for what it asks for; undefined when it may: a volume of the Pod has a token
 * for that audience, or the node was granted the audience by name.
 */
export async function problemOfAudience(
  authorizer: Authorizer,
  { asker, account, pod, audiences }: AudienceAsk,
  signal: AbortSignal,
): Promise<string | undefined> {
  const [audience = '', ...others] = audiences
  if (others.length > 0) return 'node may only request 0 or 1 audiences'
  if (audiencesOfVolumes(pod).includes(audience)) return undefined
  const { name, namespace = '' } = account.metadata
  const resource = {
    group: '',
    version: 'v1',
    resource: audience,
    subresource: '',
    namespace,
    name,
  }
  const verb = 'request-serviceaccounts-token-audience'
  const { allowed } = await authorizer.authorize({ user: asker, verb, resource }, signal)
  if (allowed) return undefined
  return `audience ${goQuote(audience)} not found in pod spec volume, ${asker.username} is not authorized to request tokens for this audience`
}

function audiencesOfVolumes({ spec }: KubeObject): string[] {
  return membersOf(spec, 'volumes')
    .flatMap((volume) => membersOf(volume['projected'], 'sources'))
    .flatMap(({ serviceAccountToken: token }) =>
      isRecord(token) ? [typeof token['audience'] === 'string' ? token['audience'] : ''] : [],
    )
}

function membersOf(value: unknown, list: string): Record<string, unknown>[] {
  const members = isRecord(value) ? value[list] : undefined
  return Array.isArray(members) ? members.filter(isRecord) : []
}
