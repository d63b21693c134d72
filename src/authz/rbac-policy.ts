import { goQuote, type KubeObject, type UserInfo, wellKnown } from '../core/index.ts'
import {
  type Binding,
  type RoleRef,
  rbacGroup,
  readBinding,
  readRules,
  type Subject,
} from './rbac-objects.ts'
import { type GrantedRole, RoleRules, RuleSet } from './rule-set.ts'

const userKey = (name: string) => `u:${name}`
const groupKey = (name: string) => `g:${name}`

function keyOf(subject: Subject, binding: Binding): string | undefined {
  switch (subject.kind) {
    case 'User':
      return userKey(subject.name)
    case 'Group':
      return groupKey(subject.name)
    case 'ServiceAccount': {
      const namespace = subject.namespace || binding.namespace
      if (namespace === '') return undefined
      return userKey(`${wellKnown.serviceAccountUserPrefix}${namespace}:${subject.name}`)
    }
    default:
      return undefined
  }
}

const keysOf = (user: UserInfo): Set<string> =>
  new Set([userKey(user.username), ...user.groups.map(groupKey)])

/** A binding and the first of its subjects that means the user. */
export interface AppliedBinding {
  readonly binding: Binding
  readonly subject: Subject
}

/** Bindings of one namespace, or of the cluster, found by whom they concern. */
export class SubjectIndex {
  readonly #bindings = new Map<string, Binding>()
  /** Each binding with the place of the subject among its subjects. */
  readonly #bySubject = new Map<string, Map<Binding, number>>()

  put(binding: Binding): void {
    this.remove(binding.name)
    this.#bindings.set(binding.name, binding)
    for (const [place, subject] of binding.subjects.entries()) {
      const key = keyOf(subject, binding)
      if (key === undefined) continue
      const known = this.#bySubject.get(key) ?? new Map<Binding, number>()
      this.#bySubject.set(key, known)
      if (!known.has(binding)) known.set(binding, place)
    }
  }

  remove(name: string): void {
    const binding = this.#bindings.get(name)
    if (!binding) return
    this.#bindings.delete(name)
    for (const subject of binding.subjects) {
      const key = keyOf(subject, binding)
      const concerned = key === undefined ? undefined : this.#bySubject.get(key)
      if (key === undefined || !concerned) continue
      concerned.delete(binding)
      if (concerned.size === 0) this.#bySubject.delete(key)
    }
  }

  get isEmpty(): boolean {
    return this.#bindings.size === 0
  }

  /** The bindings that apply to a user, in the order of their names. */
  appliedTo(user: UserInfo): AppliedBinding[] {
    const first = new Map<Binding, number>()
    for (const key of keysOf(user))
      for (const [binding, place] of this.#bySubject.get(key) ?? [])
        first.set(binding, Math.min(place, first.get(binding) ?? place))
    return [...first]
      .toSorted(([a], [b]) => (a.name < b.name ? -1 : 1))
      .flatMap(([binding, place]) => {
        const subject = binding.subjects[place]
        return subject ? [{ binding, subject }] : []
      })
  }
}

const maxCachedUsers = 4096
const nothing = new RuleSet([])

/** What one user may do: in the whole cluster, and in addition in some namespaces. */
interface UserRules {
  readonly cluster: RuleSet
  readonly namespaces: Map<string, RuleSet>
}

/** Roles and bindings in memory, and from them the rules of each user, kept until something changes. */
export class PolicyIndex {
  readonly #roles = new Map<string, RoleRules>()
  readonly #clusterRoles = new Map<string, RoleRules>()
  readonly #clusterBindings = new SubjectIndex()
  readonly #bindings = new Map<string, SubjectIndex>()
  #byUser = new WeakMap<UserInfo, UserRules>()
  #byName = new Map<string, UserRules>()

  /** Takes in a new or changed role or binding of any of the four kinds. */
  put(object: KubeObject): void {
    this.#change(object, true)
  }

  /** Takes out a role or binding. */
  remove(object: KubeObject): void {
    this.#change(object, false)
  }

  /** The rules that hold in every namespace and for plain paths. */
  clusterRulesOf(user: UserInfo): RuleSet {
    return this.#rulesOf(user).cluster
  }

  /** The rules that role bindings of one namespace add. */
  namespaceRulesOf(user: UserInfo, namespace: string): RuleSet {
    const index = this.#bindings.get(namespace)
    if (!index) return nothing
    const rules = this.#rulesOf(user)
    const known = rules.namespaces.get(namespace)
    if (known) return known
    const resolved = this.#resolve(index.appliedTo(user))
    rules.namespaces.set(namespace, resolved)
    return resolved
  }

  #rulesOf(user: UserInfo): UserRules {
    const known = this.#byUser.get(user)
    if (known) return known
    const name = JSON.stringify([user.username, user.groups])
    const rules = this.#byName.get(name) ?? {
      cluster: this.#resolve(this.#clusterBindings.appliedTo(user)),
      namespaces: new Map<string, RuleSet>(),
    }
    if (this.#byName.size >= maxCachedUsers) this.#byName.clear()
    this.#byName.set(name, rules)
    this.#byUser.set(user, rules)
    return rules
  }

  #resolve(applied: readonly AppliedBinding[]): RuleSet {
    const granted = new Map<RoleRules, GrantedRole>()
    const problems: string[] = []
    for (const { binding, subject } of applied) {
      const found = this.#rulesOfRole(binding.roleRef, binding.namespace)
      if (typeof found === 'string') problems.push(found)
      else if (!granted.has(found))
        granted.set(found, {
          role: found,
          decision: { allowed: true, reason: reasonOf(binding, subject) },
        })
    }
    return new RuleSet([...granted.values()], problems)
  }

  #rulesOfRole(ref: RoleRef, namespace: string): RoleRules | string {
    if (ref.kind === 'ClusterRole') {
      return (
        this.#clusterRoles.get(ref.name) ??
        `clusterrole.${rbacGroup} ${goQuote(ref.name)} not found`
      )
    }
    if (ref.kind === 'Role') {
      return (
        this.#roles.get(`${namespace}/${ref.name}`) ??
        `role.${rbacGroup} ${goQuote(ref.name)} not found`
      )
    }
    return `unsupported role reference kind: ${goQuote(ref.kind)}`
  }

  #change(object: KubeObject, present: boolean): void {
    const { name, namespace = '' } = object.metadata
    switch (object.kind) {
      case 'Role':
        setOrDelete(this.#roles, `${namespace}/${name}`, present ? rulesOf(object) : undefined)
        break
      case 'ClusterRole':
        setOrDelete(this.#clusterRoles, name, present ? rulesOf(object) : undefined)
        break
      case 'ClusterRoleBinding':
        changeIn(this.#clusterBindings, readBinding(object), present)
        break
      case 'RoleBinding':
        this.#changeBinding(readBinding(object), present)
        break
      default:
        return
    }
    this.#byUser = new WeakMap()
    this.#byName = new Map()
  }

  #changeBinding(binding: Binding, present: boolean): void {
    const index = this.#bindings.get(binding.namespace) ?? new SubjectIndex()
    changeIn(index, binding, present)
    setOrDelete(this.#bindings, binding.namespace, index.isEmpty ? undefined : index)
  }
}

const rulesOf = (role: KubeObject): RoleRules => new RoleRules(readRules(role))

function changeIn(index: SubjectIndex, binding: Binding, present: boolean): void {
  if (present) index.put(binding)
  else index.remove(binding.name)
}

function setOrDelete<V>(map: Map<string, V>, key: string, value: V | undefined): void {
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}

function reasonOf(binding: Binding, subject: Subject): string {
  const { roleRef, namespace } = binding
  const what = namespace
    ? `RoleBinding ${goQuote(`${binding.name}/${namespace}`)}`
    : `ClusterRoleBinding ${goQuote(binding.name)}`
  const whom =
    subject.kind === 'ServiceAccount'
      ? goQuote(`${subject.name}/${subject.namespace || namespace}`)
      : goQuote(subject.name)
  return `RBAC: allowed by ${what} of ${roleRef.kind} ${goQuote(roleRef.name)} to ${subject.kind} ${whom}`
}
