import {
  ApiError,
  type Attributes,
  type Authorizer,
  type Decision,
  forbidden,
  goQuote,
  type RulesOfUser,
  type UserInfo,
  wellKnown,
} from '../core/index.ts'

const noOpinion: Decision = { allowed: false, reason: '' }

/** Consults authorizers in order: the first that allows or explicitly denies decides; else it denies with all reasons. */
export function union(authorizers: readonly Authorizer[]): Authorizer {
  return {
    authorize: (attributes, signal) => decideFrom(0, [], { authorizers, attributes, signal }),
    rulesFor: async (user, namespace, signal) => {
      const asked = authorizers.map(async (each) => each.rulesFor(user, namespace, signal))
      return mergeRules(await Promise.all(asked))
    },
  }
}

interface Question {
  readonly authorizers: readonly Authorizer[]
  readonly attributes: Attributes
  readonly signal: AbortSignal
}

/** Stays synchronous as long as the authorizers do: it is on the path of every request. */
function decideFrom(
  start: number,
  refusals: readonly Decision[],
  question: Question,
): Decision | Promise<Decision> {
  const { authorizers, attributes, signal } = question
  const soFar = [...refusals]
  for (let index = start; index < authorizers.length; index += 1) {
    const authorizer = authorizers[index]
    if (!authorizer || !isFor(authorizer, attributes.user)) continue
    const result = authorizer.authorize(attributes, signal)
    if (result instanceof Promise) {
      return result.then((decision) =>
        decision.allowed || decision.denied
          ? decision
          : decideFrom(index + 1, [...soFar, decision], question),
      )
    }
    if (result.allowed || result.denied) return result
    soFar.push(result)
  }
  return mergeRefusals(soFar)
}

const isFor = ({ group }: Authorizer, { groups }: UserInfo): boolean =>
  group === undefined || groups.includes(group)

function mergeRefusals(refusals: readonly Decision[]): Decision {
  const reasons = refusals.map((each) => each.reason).filter((reason) => reason !== '')
  const errors = refusals.flatMap((each) => each.evaluationError ?? [])
  if (reasons.length === 0 && errors.length === 0) return noOpinion
  return {
    allowed: false,
    reason: reasons.join('\n'),
    ...(errors.length > 0 && { evaluationError: errors.join(', ') }),
  }
}

function mergeRules(all: readonly RulesOfUser[]): RulesOfUser {
  const errors = all.flatMap((each) => each.evaluationError ?? [])
  return {
    resourceRules: all.flatMap((each) => each.resourceRules),
    nonResourceRules: all.flatMap((each) => each.nonResourceRules),
    incomplete: all.some((each) => each.incomplete),
    ...(errors.length > 0 && { evaluationError: errors.join(', ') }),
  }
}

const allowed: Decision = { allowed: true, reason: '' }
const noRules: RulesOfUser = { resourceRules: [], nonResourceRules: [], incomplete: false }

/** True for members of `system:masters`, whom no rule binds. */
export const isSuperuser = (user: UserInfo): boolean => user.groups.includes(wellKnown.masters)

/** Lets members of `system:masters` do everything, so that no broken policy can lock them out. */
export const superusers: Authorizer = {
  group: wellKnown.masters,
  authorize: ({ user }) => (isSuperuser(user) ? allowed : noOpinion),
  rulesFor: () => noRules, // the binding of cluster-admin lists them
}

const markup: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** Names can hold anything, and browsers may show the message: it must not look like HTML. */
const withoutMarkup = (text: string): string => text.replace(/[&<>]/g, (c) => markup[c] ?? c)

/** Who cannot do what, in the sentence that Kubernetes uses. */
export function describeDenial({ user, verb, resource, path }: Attributes): string {
  const who = `User ${goQuote(user.username)} cannot ${verb}`
  if (!resource) return withoutMarkup(`${who} path ${goQuote(path ?? '')}`)
  const { subresource, namespace, group } = resource
  const what = subresource ? `${resource.resource}/${subresource}` : resource.resource
  const where = namespace ? `in the namespace ${goQuote(namespace)}` : 'at the cluster scope'
  return withoutMarkup(`${who} resource ${goQuote(what)} in API group ${goQuote(group)} ${where}`)
}

/** The 403 for a request that nobody allowed. */
export function denial(attributes: Attributes, decision: Decision): ApiError {
  const sentence = describeDenial(attributes)
  const why = decision.reason === '' ? sentence : `${sentence}: ${decision.reason}`
  const { resource } = attributes
  if (resource) return forbidden(resource, resource.name, why)
  return new ApiError('Forbidden', `forbidden: ${why}`, { details: {} })
}
