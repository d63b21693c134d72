import {
  type Attributes,
  type Decision,
  goQuoteList,
  type ResourceAttributes,
} from '../core/index.ts'
import type { PolicyRule } from './rbac-objects.ts'

/** What is granted on one resource: on all objects, or by name. */
interface Place {
  onAll: boolean
  readonly onNames: Set<string>
}

/** By verb, API group and resource. */
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
  const place: Place = { onAll: false, onNames: new Set() }
  byResource.set(resource, place)
  return place
}

/**
 * The rules of one role, prepared so that a decision costs a dozen map lookups, however many rules there are. Made once
 * for each role and shared by all its bindings: the lists of a rule multiply, and so do bindings and users.
 */
export class RoleRules {
  readonly rules: readonly PolicyRule[]
  readonly #places: Places = new Map()
  readonly #paths: PolicyRule[] = []

  constructor(rules: readonly PolicyRule[]) {
    this.rules = rules
    for (const rule of rules) this.#index(rule)
  }

  /** True when a rule covers the request. */
  allows(attributes: Attributes): boolean {
    const { verb, resource, path = '' } = attributes
    if (!resource) return this.#hasPath(verb, path)
    return this.#allowsVerb(verb, resource) || this.#allowsVerb('*', resource)
  }

  /** True when the rules give all that a broken-down rule, one of one verb and object, gives. */
  covers({ verbs: [verb = ''], ...atom }: PolicyRule): boolean {
    const [url] = atom.nonResourceURLs
    if (url !== undefined) return this.#hasPath(verb, url)
    return this.#coversVerb(verb, atom) || this.#coversVerb('*', atom)
  }

  #index(rule: PolicyRule): void {
    for (const verb of rule.verbs) {
      const byGroup = childOf<Map<string, Place>>(this.#places, verb)
      for (const group of rule.apiGroups) {
        const byResource = childOf<Place>(byGroup, group)
        for (const resource of rule.resources) {
          const place = placeOf(byResource, resource)
          if (rule.resourceNames.length === 0) place.onAll = true
          for (const name of rule.resourceNames) place.onNames.add(name)
        }
      }
    }
    if (rule.nonResourceURLs.length > 0) this.#paths.push(rule)
  }

  #allowsVerb(verb: string, wanted: ResourceAttributes): boolean {
    const byGroup = this.#places.get(verb)
    if (!byGroup) return false
    return (
      allowsResource(byGroup.get(wanted.group), wanted) || allowsResource(byGroup.get('*'), wanted)
    )
  }

  #coversVerb(verb: string, atom: Omit<PolicyRule, 'verbs'>): boolean {
    const byGroup = this.#places.get(verb)
    if (!byGroup) return false
    const [group = ''] = atom.apiGroups
    const [resource = ''] = atom.resources
    const [name] = atom.resourceNames
    return (
      coversResource(byGroup.get(group), resource, name) ||
      coversResource(byGroup.get('*'), resource, name)
    )
  }

  #hasPath(verb: string, path: string): boolean {
    return this.#paths.some(
      ({ verbs, nonResourceURLs }) =>
        (verbs.includes(verb) || verbs.includes('*')) &&
        nonResourceURLs.some((pattern) => pathMatches(pattern, path)),
    )
  }
}

const gives = (place: Place | undefined, name: string | undefined): boolean =>
  place !== undefined && (place.onAll || (name !== undefined && place.onNames.has(name)))

function allowsResource(
  byResource: Map<string, Place> | undefined,
  { resource, subresource, name }: ResourceAttributes,
): boolean {
  if (!byResource) return false
  if (gives(byResource.get('*'), name)) return true
  if (subresource === '') return gives(byResource.get(resource), name)
  return (
    gives(byResource.get(`${resource}/${subresource}`), name) ||
    gives(byResource.get(`*/${subresource}`), name)
  )
}

/** The same for a resource of a rule, which may be `*` or end in a subresource. */
function coversResource(
  byResource: Map<string, Place> | undefined,
  resource: string,
  name: string | undefined,
): boolean {
  if (!byResource) return false
  if (gives(byResource.get(resource), name) || gives(byResource.get('*'), name)) return true
  const slash = resource.indexOf('/')
  return slash >= 0 && gives(byResource.get(`*${resource.slice(slash)}`), name)
}

/** A role together with the decision that a request it covers gets. */
export interface GrantedRole {
  readonly role: RoleRules
  readonly decision: Decision
}

/** The roles of a user, each of them once. */
export class RuleSet {
  /** In the order of their bindings: of several that match, the first gives the reason. */
  readonly granted: readonly GrantedRole[]
  /** Why some rules could not be found, in Kubernetes' words. */
  readonly problems: readonly string[]

  constructor(granted: readonly GrantedRole[], problems: readonly string[] = []) {
    this.granted = granted
    this.problems = problems
  }

  /** The decision of the first role that covers the request, if one does. */
  find(attributes: Attributes): Decision | undefined {
    for (const { role, decision } of this.granted) if (role.allows(attributes)) return decision
    return undefined
  }
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
export function* breakDown(rule: PolicyRule): Generator<PolicyRule> {
  for (const group of rule.apiGroups) {
    for (const resource of rule.resources) {
      for (const verb of rule.verbs) {
        const atom = { ...noRule, apiGroups: [group], resources: [resource], verbs: [verb] }
        if (rule.resourceNames.length === 0) yield atom
        else yield* byName(atom, rule.resourceNames)
      }
    }
  }
  for (const url of rule.nonResourceURLs)
    for (const verb of rule.verbs) yield { ...noRule, nonResourceURLs: [url], verbs: [verb] }
}

function* byName(atom: PolicyRule, names: readonly string[]): Generator<PolicyRule> {
  for (const name of names) yield { ...atom, resourceNames: [name] }
}

/** A step of a comparison: a right that is missing, or the number of lookups so far. */
type Compared = { readonly missing: PolicyRule } | { readonly lookups: number }

/**
 * Compares `wanted` with what the holder of all roles `held` has. Both are chosen by users and multiply, so it goes
 * step by step, and its caller decides when it is too much.
 */
export function* compareRules(
  held: readonly RoleRules[],
  wanted: readonly PolicyRule[],
): Generator<Compared> {
  let lookups = 0
  /** What covered the last right covers the next one, mostly. */
  let latest = held[0]
  const isHeld = (atom: PolicyRule): boolean => {
    lookups++
    if (latest?.covers(atom)) return true
    for (const role of held) {
      lookups++
      if (!role.covers(atom)) continue
      latest = role
      return true
    }
    return false
  }
  for (const rule of wanted) {
    for (const onAll of breakDown({ ...rule, resourceNames: [] })) {
      const isWhole = rule.resourceNames.length === 0 || onAll.nonResourceURLs.length > 0
      const isCovered = isHeld(onAll)
      yield { lookups }
      if (isCovered) continue
      for (const atom of isWhole ? [onAll] : byName(onAll, rule.resourceNames)) {
        if (isWhole || !isHeld(atom)) yield { missing: atom }
        yield { lookups }
      }
    }
  }
}

/** What of `wanted` the holder of `held` does not have, broken down; empty when all is covered. */
export function missingRules(
  held: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): PolicyRule[] {
  const missing: PolicyRule[] = []
  for (const step of compareRules([new RoleRules(held)], wanted))
    if ('missing' in step) missing.push(step.missing)
  return missing
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
