import { ApiError, isRecord } from '../../core/index.ts'
import { deepCopy, depthOf, jsonEqual, malformedPatch, patchDoesNotApply } from './errors.ts'

/** RFC 6901: the steps from the whole document to one place; `undefined` when it is not a pointer. */
function parsePointer(pointer: string): string[] | undefined {
  if (pointer === '') return []
  if (!pointer.startsWith('/')) return undefined
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** Something that has places: an array or an object. */
type Container = unknown[] | Record<string, unknown>

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
function valueAt(container: Container, step: string): { value: unknown } | undefined {
  if (Array.isArray(container)) {
    const index = indexOf(step, container.length)
    return index === undefined ? undefined : { value: container[index] }
  }
  return Object.hasOwn(container, step) ? { value: container[step] } : undefined
}

/** The container that all steps but the last lead to. */
function containerOf(document: unknown, steps: readonly string[]): Container | undefined {
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
function insertAt(container: Container, step: string, value: unknown): boolean {
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
function replaceAt(container: Container, step: string, value: unknown): boolean {
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
function removeAt(container: Container, step: string): boolean {
  if (!Array.isArray(container)) return Object.hasOwn(container, step) && delete container[step]
  const index = indexOf(step, container.length)
  if (index === undefined) return false
  container.splice(index, 1)
  return true
}

const maxOperations = 10_000
/** All that `copy` operations may add: ten of them in a row could otherwise double the object ten times. */
const maxCopiedBytes = 3 * 1024 * 1024
/** All that operations may move to make or close gaps in lists: ten thousand on a long list take their time. */
const maxMovedItems = 100_000_000
const maxDepth = 1_000

interface Operation {
  readonly op: string
  readonly path: string
  readonly from: string
  /** Absent is told from null. */
  readonly value: unknown
  /** The operation as a message names it. */
  readonly shown: string
}

/** The document under change and what the operations so far have cost. */
interface Work {
  document: unknown
  copiedBytes: number
  movedItems: number
}

function optionalText(operation: Record<string, unknown>, field: string, at: number): string {
  const value = operation[field] ?? ''
  if (typeof value !== 'string') throw malformedPatch(`[${at}].${field}: must be a string`)
  return value
}

function parseOperation(operation: unknown, at: number): Operation {
  if (!isRecord(operation)) throw malformedPatch(`[${at}]: an operation is an object`)
  const op = optionalText(operation, 'op', at)
  const path = optionalText(operation, 'path', at)
  const from = optionalText(operation, 'from', at)
  const shown = `operation ${at} (${op} ${JSON.stringify(path)})`
  if (operation['path'] === undefined) throw patchDoesNotApply(`${shown} has no path`)
  return { op, path, from, value: operation['value'], shown }
}

/** A place by its container and the last step to it; the whole document is no such place. */
function locate(work: Work, pointer: string, shown: string): { at: Container; step: string } {
  const steps = parsePointer(pointer)
  const place = JSON.stringify(pointer)
  if (steps === undefined) {
    throw patchDoesNotApply(`${shown}: ${place} is not a JSON pointer, it must start with "/"`)
  }
  const step = steps.at(-1)
  if (step === undefined) {
    throw patchDoesNotApply(`${shown} cannot be done to the whole object`)
  }
  const at = containerOf(work.document, steps)
  if (at === undefined) throw patchDoesNotApply(`${shown}: nothing there leads to ${place}`)
  return { at, step }
}

function existing(work: Work, pointer: string, shown: string): unknown {
  const { at, step } = locate(work, pointer, shown)
  const found = valueAt(at, step)
  if (found === undefined) {
    throw patchDoesNotApply(`${shown}: there is no ${JSON.stringify(pointer)}`)
  }
  return found.value
}

function requireDepth(value: unknown, shown: string): void {
  if (depthOf(value) > maxDepth) {
    throw patchDoesNotApply(`${shown} nests values deeper than ${maxDepth} levels`)
  }
}

function chargeForMoves(work: Work, at: Container, shown: string): void {
  if (!Array.isArray(at)) return
  work.movedItems += at.length
  if (work.movedItems <= maxMovedItems) return
  throw patchDoesNotApply(`${shown} makes this patch move more than ${maxMovedItems} list items`)
}

function insert(work: Work, operation: Operation, value: unknown): void {
  const { at, step } = locate(work, operation.path, operation.shown)
  chargeForMoves(work, at, operation.shown)
  if (insertAt(at, step, value)) return
  throw patchDoesNotApply(`${operation.shown}: ${JSON.stringify(step)} is no index of that list`)
}

function remove(work: Work, pointer: string, shown: string): void {
  const { at, step } = locate(work, pointer, shown)
  chargeForMoves(work, at, shown)
  if (removeAt(at, step)) return
  throw patchDoesNotApply(`${shown}: there is no ${JSON.stringify(pointer)}`)
}

function replace(work: Work, operation: Operation): void {
  const value = deepCopy(operation.value ?? null)
  if (operation.path === '') {
    work.document = value
    return
  }
  const { at, step } = locate(work, operation.path, operation.shown)
  if (replaceAt(at, step, value)) return
  throw patchDoesNotApply(`${operation.shown}: there is no ${JSON.stringify(operation.path)}`)
}

function move(work: Work, operation: Operation): void {
  const value = existing(work, operation.from, operation.shown)
  remove(work, operation.from, operation.shown)
  insert(work, operation, value)
}

function copy(work: Work, operation: Operation): void {
  const value = existing(work, operation.from, operation.shown)
  requireDepth(value, operation.shown)
  work.copiedBytes += Buffer.byteLength(JSON.stringify(value))
  if (work.copiedBytes > maxCopiedBytes) {
    throw patchDoesNotApply(
      `${operation.shown} makes the copies of this patch larger than ${maxCopiedBytes} bytes`,
    )
  }
  insert(work, operation, deepCopy(value))
}

function test(work: Work, operation: Operation): void {
  const { path, value = null, shown } = operation
  if (path !== '') {
    const { at, step } = locate(work, path, shown)
    // As in Kubernetes, testing for null is also the test for absence.
    if (jsonEqual(valueAt(at, step)?.value ?? null, value)) return
  } else if (jsonEqual(work.document, value)) return
  throw patchDoesNotApply(`${shown} failed: the value there is a different one`)
}

const perform: ReadonlyMap<string, (work: Work, operation: Operation) => void> = new Map([
  ['add', (work, operation) => insert(work, operation, deepCopy(operation.value ?? null))],
  ['remove', (work, { path, shown }) => remove(work, path, shown)],
  ['replace', replace],
  ['move', move],
  ['copy', copy],
  ['test', test],
])

/** RFC 6902: performs all operations, or none. */
export function applyJsonPatch(
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
): unknown {
  if (!Array.isArray(patch)) throw malformedPatch('a JSON patch is a list of operations')
  if (patch.length > maxOperations) {
    throw new ApiError(
      'RequestEntityTooLarge',
      `Request entity too large: The allowed maximum operations in a JSON patch is ${maxOperations}, got ${patch.length}`,
    )
  }
  const work: Work = { document: deepCopy(original), copiedBytes: 0, movedItems: 0 }
  for (const operation of patch.map(parseOperation)) {
    const act = perform.get(operation.op)
    if (act === undefined) throw patchDoesNotApply(`${operation.shown} is of an unknown kind`)
    act(work, operation)
  }
  requireDepth(work.document, 'the patch')
  return work.document
}
