import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Key, RequestInfo, UserInfo } from '../../core/index.ts'
import { badRequest } from '../../core/index.ts'
import type { RegistryContext } from '../registry/registry-context.ts'
import type { ServedResource } from './served-resource.ts'

/** One authorized request and its answer to be. */
export interface RequestCall {
  readonly info: RequestInfo
  readonly user: UserInfo
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly signal: AbortSignal
  /** The whole body, within the server's limits. */
  readonly readBody: () => Promise<Buffer>
}

/** One request on one resource, with everything that its handler needs. */
export interface ApiCall extends RequestCall {
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
