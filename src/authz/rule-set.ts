import {
  type Attributes,
  type Decision,
  goQuoteList,
  type ResourceAttributes,
} from '../core/index.ts'
import type { PolicyRule } from './rbac-objects.ts'

/** A rule together with the answer that a request it covers gets. */
export interface GrantedRule {
  readonly rule: PolicyRule
  readonly decision: Decision
}

interface Grant {
  /** Position of the rule: of several that match, the first gives the reason. */
  readonly order: number
  readonly decision: Decision
}

/** What is granted on one resource; however many rules say so, only the first of each sort is kept. */
interface Place {
  onAll: Grant | undefined
  readonly onNames: Map<string, Grant>
}

type Places = Map<string, Map<string, Map<string, Place>>>

function childOf<V>(map: Map<string, Map<string, V>>, key: string): Map<string, V> {
  const known = map.get(key)
  if (known) return known
  const child = new Map<string, V>()
  map.set(key, child)
  return child
}

function placeOf(byResource: Map<string, Place>, resource: string): Place {
  const known = byResource.get(resource)
  if (known) return known
  const place: Place = { onAll: undefined, onNames: new Map() }
  byResource.set(resource, place)
  return place
}

function addGrant(place: Place, names: readonly string[], grant: Grant): void {
  if (names.length === 0) place.onAll ??= grant
  for (const name of names) if (!place.onNames.has(name)) place.onNames.set(name, grant)
}

/** Rules prepared so that a decision costs a dozen map lookups, however many rules there are. */
export class RuleSet {
  readonly rules: readonly PolicyRule[]
  /** Why some rules could not be found, in Kubernetes' words. */
  readonly problems: readonly string[]
  readonly #places: Places = new Map()
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

  /** True when the rules give all that a broken-down rule, one of one verb and object, gives. */
  covers({ verbs: [verb = ''], ...atom }: PolicyRule): boolean {
    const [url] = atom.nonResourceURLs
    if (url !== undefined) return this.#findPath(verb, url) !== undefined
    const [group = ''] = atom.apiGroups
    const [resource = ''] = atom.resources
    const [name] = atom.resourceNames
    return [verb, '*'].some((v) =>
      [group, '*'].some((g) => {
        const byResource = this.#places.get(v)?.get(g)
        return byResource && placesAbove(byResource, resource).some((place) => gives(place, name))
      }),
    )
  }

  #index({ rule, decision }: GrantedRule, order: number): void {
    for (const verb of rule.verbs) {
      const byGroup = childOf<Map<string, Place>>(this.#places, verb)
      for (const group of rule.apiGroups) {
        const byResource = childOf<Place>(byGroup, group)
        for (const resource of rule.resources) {
          addGrant(placeOf(byResource, resource), rule.resourceNames, { order, decision })
        }
      }
    }
    if (rule.nonResourceURLs.length > 0) this.#paths.push({ rule, decision })
  }

  #findResource(verb: string, wanted: ResourceAttributes): Decision | undefined {
    const ofVerb = this.#firstInGroups(this.#places.get(verb), wanted)
    const ofAnyVerb = this.#firstInGroups(this.#places.get('*'), wanted)
    return earlier(ofVerb, ofAnyVerb)?.decision
  }

  #firstInGroups(
    byGroup: Map<string, Map<string, Place>> | undefined,
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

/** The places whose grants hold for a resource, which may be `*` or end in a subresource. */
function placesAbove(byResource: Map<string, Place>, resource: string): Place[] {
  const slash = resource.indexOf('/')
  const names = [resource, '*', ...(slash < 0 ? [] : [`*${resource.slice(slash)}`])]
  return names.flatMap((name) => byResource.get(name) ?? [])
}

const gives = ({ onAll, onNames }: Place, name: string | undefined): boolean =>
  onAll !== undefined || (name !== undefined && onNames.has(name))

function firstOfResource(
  byResource: Map<string, Place> | undefined,
  wanted: ResourceAttributes,
): Grant | undefined {
  if (!byResource) return undefined
  const any = firstNamed(byResource.get('*'), wanted.name)
  const { resource, subresource, name } = wanted
  if (subresource === '') return earlier(firstNamed(byResource.get(resource), name), any)
  const exact = firstNamed(byResource.get(`${resource}/${subresource}`), name)
  return earlier(earlier(exact, firstNamed(byResource.get(`*/${subresource}`), name)), any)
}

function firstNamed(place: Place | undefined, name: string): Grant | undefined {
  return place && earlier(place.onAll, place.onNames.get(name))
}

function earlier(a: Grant | undefined, b: Grant | undefined): Grant | undefined {
  if (!a || !b) return a ?? b
  return b.order < a.order ? b : a
}

/** True when a rule's URL (exact, or a prefix that ends in `*`) covers a path. */
function pathMatches(pattern: string, path: string): boolean {
  if (pattern === path) return true
  if (!pattern.endsWith('*')) return false
  let end = pattern.length
  while (pattern[end - 1] === '*') end--
  return path.startsWith(pattern.slice(0, end))
}

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
