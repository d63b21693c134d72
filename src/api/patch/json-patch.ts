import { ApiError, isRecord, type Work } from '../../core/index.ts'
import {
  deepCopy,
  depthOf,
  jsonEqual,
  malformedPatch,
  patchDoesNotApply,
  quoted,
} from './errors.ts'

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
/** So many list items are moved, or characters of a path read, in the time of one other step. */
const movedItemsPerStep = 64
const pathCharactersPerStep = 8
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
interface Change {
  document: unknown
  copiedBytes: number
  readonly work: Work
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
  const shown = `operation ${at} (${op.slice(0, 20)} ${quoted(path)})`
  if (operation['path'] === undefined) throw patchDoesNotApply(`${shown} has no path`)
  return { op, path, from, value: operation['value'], shown }
}

/** A place by its container and the last step to it; the whole document is no such place. */
function locate(change: Change, pointer: string, shown: string): { at: Container; step: string } {
  change.work.spend('operations', 1 + Math.floor(pointer.length / pathCharactersPerStep))
  const steps = parsePointer(pointer)
  const place = quoted(pointer)
  if (steps === undefined) {
    throw patchDoesNotApply(`${shown}: ${place} is not a JSON pointer, it must start with "/"`)
  }
  const step = steps.at(-1)
  if (step === undefined) {
    throw patchDoesNotApply(`${shown} cannot be done to the whole object`)
  }
  const at = containerOf(change.document, steps)
  if (at === undefined) throw patchDoesNotApply(`${shown}: nothing there leads to ${place}`)
  return { at, step }
}

function existing(change: Change, pointer: string, shown: string): unknown {
  const { at, step } = locate(change, pointer, shown)
  const found = valueAt(at, step)
  if (found === undefined) {
    throw patchDoesNotApply(`${shown}: there is no ${quoted(pointer)}`)
  }
  return found.value
}

function requireDepth(value: unknown, shown: string, work: Work): void {
  if (depthOf(value, work) > maxDepth) {
    throw patchDoesNotApply(`${shown} nests values deeper than ${maxDepth} levels`)
  }
}

/** An item that comes or goes in a list moves all behind it. */
function chargeForMoves({ work }: Change, at: Container): void {
  if (Array.isArray(at)) work.spend('operations', Math.floor(at.length / movedItemsPerStep))
}

function insert(change: Change, operation: Operation, value: unknown): void {
  const { at, step } = locate(change, operation.path, operation.shown)
  chargeForMoves(change, at)
  if (insertAt(at, step, value)) return
  throw patchDoesNotApply(`${operation.shown}: ${quoted(step)} is no index of that list`)
}

function remove(change: Change, pointer: string, shown: string): void {
  const { at, step } = locate(change, pointer, shown)
  chargeForMoves(change, at)
  if (removeAt(at, step)) return
  throw patchDoesNotApply(`${shown}: there is no ${quoted(pointer)}`)
}

function replace(change: Change, operation: Operation): void {
  const value = deepCopy(operation.value ?? null, change.work)
  if (operation.path === '') {
    change.document = value
    return
  }
  const { at, step } = locate(change, operation.path, operation.shown)
  if (replaceAt(at, step, value)) return
  throw patchDoesNotApply(`${operation.shown}: there is no ${quoted(operation.path)}`)
}

function move(change: Change, operation: Operation): void {
  const value = existing(change, operation.from, operation.shown)
  remove(change, operation.from, operation.shown)
  insert(change, operation, value)
}

function copy(change: Change, operation: Operation): void {
  const value = existing(change, operation.from, operation.shown)
  requireDepth(value, operation.shown, change.work)
  change.copiedBytes += Buffer.byteLength(JSON.stringify(value))
  if (change.copiedBytes > maxCopiedBytes) {
    throw patchDoesNotApply(
      `${operation.shown} makes the copies of this patch larger than ${maxCopiedBytes} bytes`,
    )
  }
  insert(change, operation, deepCopy(value, change.work))
}

function test(change: Change, operation: Operation): void {
  const { path, value = null, shown } = operation
  if (path !== '') {
    const { at, step } = locate(change, path, shown)
    // As in Kubernetes, testing for null is also the test for absence.
    if (jsonEqual(valueAt(at, step)?.value ?? null, value, change.work)) return
  } else if (jsonEqual(change.document, value, change.work)) return
  throw patchDoesNotApply(`${shown} failed: the value there is a different one`)
}

const perform: ReadonlyMap<string, (change: Change, operation: Operation) => void> = new Map([
  [
    'add',
    (change, operation) =>
      insert(change, operation, deepCopy(operation.value ?? null, change.work)),
  ],
  ['remove', (change, { path, shown }) => remove(change, path, shown)],
  ['replace', replace],
  ['move', move],
  ['copy', copy],
  ['test', test],
])

/** RFC 6902: performs all operations, or none. */
export function applyJsonPatch(
  patch: unknown,
  original: Readonly<Record<string, unknown>>,
  work: Work,
): unknown {
  if (!Array.isArray(patch)) throw malformedPatch('a JSON patch is a list of operations')
  if (patch.length > maxOperations) {
    throw new ApiError(
      'RequestEntityTooLarge',
      `Request entity too large: The allowed maximum operations in a JSON patch is ${maxOperations}, got ${patch.length}`,
    )
  }
  work.spend('operations', patch.length)
  const change: Change = { document: deepCopy(original, work), copiedBytes: 0, work }
  for (const operation of patch.map(parseOperation)) {
    const act = perform.get(operation.op)
    if (act === undefined) throw patchDoesNotApply(`${operation.shown} is of an unknown kind`)
    act(change, operation)
  }
  requireDepth(change.document, 'the patch', work)
  return change.document
}
