import { isRecord } from '../../core/index.ts'

/** RFC 6901: the steps from the whole document to one place; `undefined` when it is not a pointer. */
export function parsePointer(pointer: string): string[] | undefined {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) return undefined
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** Something that has places: an array or an object. */
export type Container = unknown[] | Record<string, unknown>

const isContainer = (value: unknown): value is Container => Array.isArray(value) || isRecord(value)

/**
 * The index that a step names in an array of `length`. Kubernetes also counts from the end: -1 is
 * the last place.
 */
function indexOf(step: string, length: number): number | undefined {
  if (!/^[+-]?\d{1,9}$/.test(step)) return undefined
  const index = Number(step)
  const counted = index < 0 ? index + length : index
  return counted >= 0 && counted < length ? counted : undefined
}

/** What a step leads to; absent is told from null. */
export function valueAt(container: Container, step: string): { value: unknown } | undefined {
  if (Array.isArray(container)) {
    const index = indexOf(step, container.length)
    return index === undefined ? undefined : { value: container[index] }
  }
  return Object.hasOwn(container, step) ? { value: container[step] } : undefined
}

/** The container that all steps but the last lead to. */
export function containerOf(document: unknown, steps: readonly string[]): Container | undefined {
  let place: unknown = document
  for (const step of steps.slice(0, -1)) {
    if (!isContainer(place)) return undefined
    place = valueAt(place, step)?.value
  }
  return isContainer(place) ? place : undefined
}

function setOwn(object: Record<string, unknown>, key: string, value: unknown): void {
  // Plain assignment to `__proto__` would change what the object inherits.
  Object.defineProperty(object, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  })
}

/** Puts a value at a place, between others in an array; false when there is no such place. */
export function insertAt(container: Container, step: string, value: unknown): boolean {
  if (!Array.isArray(container)) {
    setOwn(container, step, value)
    return true
  }
  const index = step === '-' ? container.length : indexOf(step, container.length + 1)
  if (index === undefined) return false
  container.splice(index, 0, value)
  return true
}

/** Puts a value in the place of another; an object need not have had one, as in Kubernetes. */
export function replaceAt(container: Container, step: string, value: unknown): boolean {
  if (!Array.isArray(container)) {
    setOwn(container, step, value)
    return true
  }
  const index = indexOf(step, container.length)
  if (index === undefined) return false
  container[index] = value
  return true
}

/** Takes a value away; false when it was not there. */
export function removeAt(container: Container, step: string): boolean {
  if (!Array.isArray(container)) return Object.hasOwn(container, step) && delete container[step]
  const index = indexOf(step, container.length)
  if (index === undefined) return false
  container.splice(index, 1)
  return true
}
