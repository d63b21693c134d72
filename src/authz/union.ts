import type { Attributes, Authorizer, Decision, RulesOfUser } from '../core/index.ts'

const noOpinion: Decision = { allowed: false, reason: '' }

/** Asks in order: the first that allows or explicitly denies decides; else it is a no with all reasons. */
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
    const answer = authorizers[index]?.authorize(attributes, signal) ?? noOpinion
    if (answer instanceof Promise) {
      return answer.then((decision) =>
        decision.allowed || decision.denied
          ? decision
          : decideFrom(index + 1, [...soFar, decision], question),
      )
    }
    if (answer.allowed || answer.denied) return answer
    soFar.push(answer)
  }
  return mergeRefusals(soFar)
}

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
