import { type UserInfo, wellKnown } from '../core/index.ts'
import type { Binding, Subject } from './rbac-objects.ts'

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
  readonly #bySubject = new Map<string, Set<Binding>>()

  put(binding: Binding): void {
    this.remove(binding.name)
    this.#bindings.set(binding.name, binding)
    for (const subject of binding.subjects) {
      const key = keyOf(subject, binding)
      if (key === undefined) continue
      const known = this.#bySubject.get(key)
      if (known) known.add(binding)
      else this.#bySubject.set(key, new Set([binding]))
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
    const keys = keysOf(user)
    const bindings = new Set<Binding>()
    for (const key of keys) {
      for (const binding of this.#bySubject.get(key) ?? []) bindings.add(binding)
    }
    return [...bindings]
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .flatMap((binding) => {
        const subject = binding.subjects.find((each) => keys.has(keyOf(each, binding) ?? ''))
        return subject ? [{ binding, subject }] : []
      })
  }
}
