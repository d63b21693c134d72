import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  ApiError,
  type Authentication,
  badRequest,
  invalid,
  type Key,
  type Kind,
  type KubeObject,
  type RequestInfo,
  type UserInfo,
} from '../../core/index.ts'
import { RecordDamaged, StoreWriteFailed } from '../../storage/index.ts'
import { type FieldValidation, fieldValidationLevels, fieldValidationOf } from '../content/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import { type KindBytes, kindBytes } from '../registry/object-bytes.ts'
import type { RegistryContext } from '../registry/registry.ts'
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  notSupported,
  toCause,
  tooLong,
} from '../validation/index.ts'
import type { BodyOwner, RequestBodies } from './request-bodies.ts'
import { ObjectEvents, WatchedViews } from './watch-events.ts'

/** A kind as the HTTP side knows it: its definition and what its answers are made of. */
export interface ServedResource {
  readonly definition: KindDefinition
  /** The constant bytes of its answers. */
  readonly bytes: KindBytes
  /** The encoder that all its watchers share. */
  readonly events: ObjectEvents
  /** And those who watch tables or bare metadata. */
  readonly views: WatchedViews
}

/** The served resources by `group/version/resource`. */
export function servedResources(
  definitions: readonly KindDefinition[],
): ReadonlyMap<string, ServedResource> {
  return new Map(
    definitions.map((definition) => {
      const { group, version, resource } = definition.kind
      const bytes = kindBytes(definition.kind)
      const events = new ObjectEvents(definition.kind, bytes)
      const views = new WatchedViews(definition)
      return [`${group}/${version}/${resource}`, { definition, bytes, events, views }]
    }),
  )
}

/** One authorized request and its answer to be. */
export interface RequestCall {
  readonly info: RequestInfo
  readonly user: UserInfo
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly signal: AbortSignal
}

/** A request that may have a body. */
export interface BodyCall extends RequestCall, BodyOwner {
  readonly bodies: RequestBodies
}

/** Who pays for a request: users who act as others pay themselves. */
export const ownerOf = ({ impersonator, user }: Authentication): string =>
  (impersonator ?? user).username

/** One request on one resource, with everything that its handler needs. */
export interface ApiCall extends BodyCall {
  readonly context: RegistryContext
  readonly resource: ServedResource
  /** Throws a 403 unless the user may do this as well with what the URL names. */
  readonly requireVerb: (verb: string) => Promise<void>
}

/** Namespace and name that the URL states. */
export function keyOfCall(call: ApiCall): Key {
  const { namespace, name } = call.info
  return call.resource.definition.kind.namespaced ? { namespace, name } : { name }
}

// Kubernetes prints for people when a browser or a command-line tool asks without saying more.
const humanAgent = /^(curl|Wget|Mozilla\/5\.0)/

/** True when the answer is for a person's eyes. */
export function wantsPretty(call: RequestCall): boolean {
  const asked = call.info.query.get('pretty')
  if (asked !== null) return asked === 'true' || asked === '1'
  return humanAgent.test(call.request.headers['user-agent'] ?? '')
}

/** A query parameter that must be a whole number; `undefined` when absent. */
export function integerParameter(query: URLSearchParams, parameter: string): number | undefined {
  const text = query.get(parameter)
  if (text === null) return undefined
  const number = Number(text)
  if (!/^[+-]?\d+$/.test(text) || !Number.isSafeInteger(number))
    throw badRequest(
      `query parameter ${parameter} must be a whole number, not ${JSON.stringify(text)}`,
    )
  return number
}

/** Kubernetes takes every word for true but these. */
export const isTrue = (text: string): boolean => text !== '0' && text.toLowerCase() !== 'false'

/** A query parameter that is either true or false. */
export function booleanParameter(query: URLSearchParams, parameter: string): boolean {
  const text = query.get(parameter)
  return text !== null && isTrue(text)
}

/** Whoever may read one object by its name gets that one, whatever else the selector says. */
function fieldSelectorOf({ name, query }: RequestInfo): string {
  const asked = query.get('fieldSelector') ?? ''
  const named = `metadata.name=${name.replace(/[\\,=]/g, '\\$&')}`
  if (name === '' || asked === named) return asked
  return asked ? `${asked},${named}` : named
}

/** The query parameters of lists and watches as the registry takes them. */
export function selectionQuery({ info }: ApiCall): {
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
} {
  const { namespace } = info
  const labelSelector = info.query.get('labelSelector')
  const fieldSelector = fieldSelectorOf(info)
  return {
    ...(namespace && { namespace }),
    ...(labelSelector && { labelSelector }),
    ...(fieldSelector && { fieldSelector }),
  }
}

/** Puts the URL's namespace into an object of `kind`, and refuses one that differs. */
export function placeInNamespace(
  { namespaced }: Kind,
  namespace: string,
  { metadata }: KubeObject,
): void {
  if (!namespaced) {
    delete metadata.namespace
    return
  }
  if (metadata.namespace && metadata.namespace !== namespace)
    throw badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    )
  metadata.namespace = namespace
}

/** The options under which Kubernetes files the parameters of each sort of request. */
export type OptionsKind =
  | 'CreateOptions'
  | 'DeleteOptions'
  | 'ListOptions'
  | 'PatchOptions'
  | 'UpdateOptions'

/** Throws a 422 with every problem of the options of a request, if there is one. */
export function refuseProblems(kind: OptionsKind, problems: readonly FieldProblem[]): void {
  if (problems.length > 0) throw invalid({ group: 'meta.k8s.io', kind }, '', problems.map(toCause))
}

/** How a write is meant. */
export interface WriteParameters {
  readonly dryRun: boolean
  readonly fieldValidation: FieldValidation
}

const maxFieldManagerBytes = 128
const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u

/** Nobody keeps field managers here, but a client learns of its mistake as elsewhere. */
function fieldManagerProblems(manager: string): FieldProblem[] {
  const field = 'fieldManager'
  const char = unprintable.exec(manager)
  const problems =
    Buffer.byteLength(manager) > maxFieldManagerBytes ? [tooLong(field, maxFieldManagerBytes)] : []
  if (!char) return problems
  const code = (char[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  const position = Buffer.byteLength(manager.slice(0, char.index))
  const why = `invalid character U+${code} (at position ${position})`
  return [...problems, invalidValue(field, manager, why)]
}

/** `All` is the only sort of dry run. */
export const dryRunProblems = (values: readonly string[]): FieldProblem[] =>
  values.every((value) => value === 'All') ? [] : [notSupported('dryRun', values, ['All'])]

/** Reads the query parameters of a write; throws a 422 with everything that is wrong with them. */
export function writeParametersOf(query: URLSearchParams, kind: OptionsKind): WriteParameters {
  const dryRuns = query.getAll('dryRun')
  const level = query.get('fieldValidation')
  const fieldValidation = fieldValidationOf(level)
  refuseProblems(kind, [
    ...(kind === 'PatchOptions' && query.has('force')
      ? [forbiddenValue('force', 'may not be specified for non-apply patch')]
      : []),
    ...fieldManagerProblems(query.get('fieldManager') ?? ''),
    ...dryRunProblems(dryRuns),
    ...(fieldValidation ? [] : [notSupported('fieldValidation', level, fieldValidationLevels)]),
  ])
  return { dryRun: dryRuns.length > 0, fieldValidation: fieldValidation ?? 'Warn' }
}

/** Kubernetes' own bounds: what is more in all is cut, text by text. */
const maxInTotal = 4_096
const maxOfOne = 256

function cutToFit(texts: readonly string[]): string[] {
  const total = texts.reduce((sum, text) => sum + text.length, 0)
  if (total <= maxInTotal) return [...texts]
  return texts.slice(0, maxInTotal / maxOfOne).map((text) => text.slice(0, maxOfOne))
}

/** A text may hold anything that a client has sent; a header takes no control characters, and bytes only. */
function headerValue(text: string): string {
  const quoted = JSON.stringify(text.replace(/[\0-\x1f\x7f]+/g, ' '))
  return `299 - ${Buffer.from(quoted).toString('latin1')}`
}

/** Sends warnings as Kubernetes does, so that kubectl shows them to its user. */
export function warn(call: RequestCall, warnings: readonly string[]): void {
  if (warnings.length === 0) return
  const before = call.response.getHeader('Warning')
  const added = cutToFit(warnings).map(headerValue)
  call.response.setHeader('Warning', [...(Array.isArray(before) ? before : []), ...added])
}

/** What a failure of the store means to a client of the API; other errors stay as they are. */
export function explainStoreFailure(error: unknown): unknown {
  if (error instanceof RecordDamaged)
    return new ApiError(
      'Expired',
      `an earlier value of ${error.key} is damaged: list again without a resource version`,
      { cause: error, detail: error.message },
    )
  if (error instanceof StoreWriteFailed)
    return new ApiError(
      'ServiceUnavailable',
      'the change could not be stored and was not made: the server cannot write to its store, as when the disk is full',
      { cause: error, detail: error.message, details: { retryAfterSeconds: 10 } },
    )
  return error
}
