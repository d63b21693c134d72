import { type Decision, goQuoteList } from '../core/index.ts'
import type { PolicyRule } from './rbac-objects.ts'
import { RuleSet } from './rule-set.ts'

const noRule: PolicyRule = {
  verbs: [],
  apiGroups: [],
  resources: [],
  resourceNames: [],
  nonResourceURLs: [],
}

/** The same rights as rules of one verb and one resource, name or path each. */
export function breakDown(rule: PolicyRule): PolicyRule[] {
  const names = rule.resourceNames.length > 0 ? rule.resourceNames.map((name) => [name]) : [[]]
  const onResources = rule.apiGroups.flatMap((group) =>
    rule.resources.flatMap((resource) =>
      rule.verbs.flatMap((verb) =>
        names.map((resourceNames) => ({
          ...noRule,
          apiGroups: [group],
          resources: [resource],
          verbs: [verb],
          resourceNames,
        })),
      ),
    ),
  )
  const onPaths = rule.nonResourceURLs.flatMap((url) =>
    rule.verbs.map((verb) => ({ ...noRule, nonResourceURLs: [url], verbs: [verb] })),
  )
  return [...onResources, ...onPaths]
}

const yes: Decision = { allowed: true, reason: '' }

/** What of `wanted` the holder of `held` does not have, broken down; empty when all is covered. */
export function missingRules(
  held: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): PolicyRule[] {
  const own = new RuleSet(held.map((rule) => ({ rule, decision: yes })))
  return wanted.flatMap(breakDown).filter((atom) => !own.covers(atom))
}

/** Joins broken-down rules that differ only in their verbs. */
export function compactRules(rules: readonly PolicyRule[]): PolicyRule[] {
  const joined = new Map<string, PolicyRule>()
  for (const rule of rules) {
    const { verbs, ...object } = rule
    const key = JSON.stringify(rule.nonResourceURLs.length > 0 ? rule : object)
    const known = joined.get(key)
    joined.set(key, known ? { ...known, verbs: [...known.verbs, ...verbs] } : rule)
  }
  return [...joined.values()]
}

/** A rule on one line, in the form of Kubernetes' escalation errors. */
export function describeRule(rule: PolicyRule): string {
  const parts: [string, readonly string[]][] = [
    ['APIGroups', rule.apiGroups],
    ['Resources', rule.resources],
    ['NonResourceURLs', rule.nonResourceURLs],
    ['ResourceNames', rule.resourceNames],
    ['Verbs', rule.verbs],
  ]
  const shown = parts.filter(([, values]) => values.length > 0)
  return `{${shown.map(([name, values]) => `${name}:${goQuoteList(values)}`).join(', ')}}`
}
