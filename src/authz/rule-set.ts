import type { Attributes, Decision, ResourceAttributes } from '../core/index.ts'
import type { PolicyRule } from './rbac-objects.ts'

/** A rule together with the answer that a request it covers gets. */
export interface GrantedRule {
  readonly rule: PolicyRule
  readonly decision: Decision
}

interface Grant {
  /** Position of the rule: of several that match, the first gives the reason. */
  readonly order: number
  readonly names: ReadonlySet<string> | undefined
  readonly decision: Decision
}

type Grants = Map<string, Map<string, Map<string, Grant[]>>>

function childOf<V>(map: Map<string, Map<string, V>>, key: string): Map<string, V> {
  const known = map.get(key)
  if (known) return known
  const child = new Map<string, V>()
  map.set(key, child)
  return child
}

function addGrant(byResource: Map<string, Grant[]>, resource: string, grant: Grant): void {
  const known = byResource.get(resource)
  if (known) known.push(grant)
  else byResource.set(resource, [grant])
}

/** Rules prepared so that a decision costs a dozen map lookups, however many rules there are. */
export class RuleSet {
  readonly rules: readonly PolicyRule[]
  /** Why some rules could not be found, in Kubernetes' words. */
  readonly problems: readonly string[]
  readonly #grants: Grants = new Map()
  readonly #paths: GrantedRule[] = []

  constructor(granted: readonly GrantedRule[], problems: readonly string[] = []) {
    this.rules = granted.map((each) => each.rule)
    this.problems = problems
    granted.forEach((each, order) => {
      this.#index(each, order)
    })
  }

  /** The answer of the first rule that covers the request, if one does. */
  find(attributes: Attributes): Decision | undefined {
    if (attributes.resource) return this.#findResource(attributes.verb, attributes.resource)
    return this.#findPath(attributes.verb, attributes.path ?? '')
  }

  #index({ rule, decision }: GrantedRule, order: number): void {
    const names = rule.resourceNames.length > 0 ? new Set(rule.resourceNames) : undefined
    for (const verb of rule.verbs) {
      const byGroup = childOf<Map<string, Grant[]>>(this.#grants, verb)
      for (const group of rule.apiGroups) {
        const byResource = childOf<Grant[]>(byGroup, group)
        for (const resource of rule.resources) {
          addGrant(byResource, resource, { order, names, decision })
        }
      }
    }
    if (rule.nonResourceURLs.length > 0) this.#paths.push({ rule, decision })
  }

  #findResource(verb: string, wanted: ResourceAttributes): Decision | undefined {
    const ofVerb = this.#firstInGroups(this.#grants.get(verb), wanted)
    const ofAnyVerb = this.#firstInGroups(this.#grants.get('*'), wanted)
    return earlier(ofVerb, ofAnyVerb)?.decision
  }

  #firstInGroups(
    byGroup: Map<string, Map<string, Grant[]>> | undefined,
    wanted: ResourceAttributes,
  ): Grant | undefined {
    if (!byGroup) return undefined
    return earlier(
      firstOfResource(byGroup.get(wanted.group), wanted),
      firstOfResource(byGroup.get('*'), wanted),
    )
  }

  #findPath(verb: string, path: string): Decision | undefined {
    for (const { rule, decision } of this.#paths) {
      if (!rule.verbs.includes(verb) && !rule.verbs.includes('*')) continue
      if (rule.nonResourceURLs.some((pattern) => pathMatches(pattern, path))) return decision
    }
    return undefined
  }
}

function firstOfResource(
  byResource: Map<string, Grant[]> | undefined,
  wanted: ResourceAttributes,
): Grant | undefined {
  if (!byResource) return undefined
  const any = firstNamed(byResource.get('*'), wanted.name)
  const { resource, subresource, name } = wanted
  if (subresource === '') return earlier(firstNamed(byResource.get(resource), name), any)
  const exact = firstNamed(byResource.get(`${resource}/${subresource}`), name)
  return earlier(earlier(exact, firstNamed(byResource.get(`*/${subresource}`), name)), any)
}

function firstNamed(grants: readonly Grant[] | undefined, name: string): Grant | undefined {
  return grants?.find((grant) => grant.names === undefined || grant.names.has(name))
}

function earlier(a: Grant | undefined, b: Grant | undefined): Grant | undefined {
  if (!a || !b) return a ?? b
  return b.order < a.order ? b : a
}

/** True when a rule's URL (exact, or a prefix that ends in `*`) covers a path. */
export function pathMatches(pattern: string, path: string): boolean {
  if (pattern === path) return true
  return pattern.endsWith('*') && path.startsWith(pattern.replace(/\*+$/, ''))
}
