import { asRejection, IssuerUnavailable, TokenRejected } from './errors.ts'
import type { Findings, TokenCheck, TokenRules } from './token-checks.ts'

/** The outcome of one check of a token. */
export interface CheckOutcome {
  readonly check: string
  /** `skipped` if an earlier check failed that it depends on. */
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** What was found, or what is wrong. */
  readonly detail: string
  /** Why it failed; the code of the error that `verify` throws. */
  readonly code?: string
}

/** All checks of a token in their order. */
export interface Explanation {
  /** Whether `verify` accepts it. */
  readonly accepted: boolean
  readonly checks: readonly CheckOutcome[]
}

/** Runs the checks of `verify`, and continues after a failure as far as possible. */
export async function explainToken(
  token: string,
  rules: TokenRules,
  checks: readonly TokenCheck[],
): Promise<Explanation> {
  const found: Findings = { token }
  const outcomes: CheckOutcome[] = []
  let isForeign = false
  for (const check of checks) {
    // As in `verify`, keys are not fetched for tokens of other issuers.
    const isMissing = check.needs.some((name) => found[name] === undefined)
    if (isMissing || (isForeign && check.name === 'keys')) {
      outcomes.push({
        check: check.name,
        outcome: 'skipped',
        detail: 'skipped because an earlier check failed',
      })
      continue
    }
    const outcome = await outcomeOf(check, found, rules)
    if (check.name === 'issuer') isForeign = outcome.outcome === 'failed'
    outcomes.push(outcome)
  }
  return { accepted: outcomes.every(({ outcome }) => outcome === 'passed'), checks: outcomes }
}

async function outcomeOf(
  check: TokenCheck,
  found: Findings,
  rules: TokenRules,
): Promise<CheckOutcome> {
  try {
    await check.run(found, rules)
    return { check: check.name, outcome: 'passed', detail: check.describe(found, rules) }
  } catch (error) {
    const refusal = asRejection(error)
    if (!(refusal instanceof TokenRejected || refusal instanceof IssuerUnavailable)) throw error
    const { code, message } = refusal
    return { check: check.name, outcome: 'failed', detail: message, code }
  }
}
