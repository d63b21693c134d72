import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Key, RequestInfo, UserInfo } from '../../core/index.ts'
import { badRequest } from '../../core/index.ts'
import type { RegistryContext } from '../registry/registry-context.ts'
import type { ServedResource } from './served-resource.ts'

/** One request on one resource, with everything that its handler needs. */
export interface ApiCall {
  readonly context: RegistryContext
  readonly resource: ServedResource
  readonly info: RequestInfo
  readonly user: UserInfo
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly signal: AbortSignal
  /** The whole body, within the server's limits. */
  readonly readBody: () => Promise<Buffer>
}

/** Namespace and name that the URL states. */
export function keyOfCall(call: ApiCall): Key {
  const { namespace, name } = call.info
  return call.resource.definition.kind.namespaced ? { namespace, name } : { name }
}

// Kubernetes prints for people when a browser or a command-line tool asks without saying more.
const humanAgent = /^(curl|Wget|Mozilla\/5\.0)/

/** True when the answer is for a person's eyes. */
export function wantsPretty(call: ApiCall): boolean {
  const asked = call.info.query.get('pretty')
  if (asked !== null) return asked === 'true' || asked === '1'
  return humanAgent.test(call.request.headers['user-agent'] ?? '')
}

/** A query parameter that must be a whole number of at least 0; `undefined` when absent. */
export function wholeNumber(call: ApiCall, parameter: string): number | undefined {
  const text = call.info.query.get(parameter)
  if (text === null || text === '') return undefined
  const number = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number))
    throw badRequest(
      `query parameter ${parameter} must be a whole number, not ${JSON.stringify(text)}`,
    )
  return number
}

/** A query parameter that is either true or false. */
export function booleanParameter(call: ApiCall, parameter: string): boolean {
  const text = call.info.query.get(parameter)
  return text !== null && text !== 'false' && text !== '0'
}

/** The query parameters of lists and watches as the registry takes them. */
export function selectionQuery(call: ApiCall): {
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
} {
  const { query, namespace } = call.info
  const labelSelector = query.get('labelSelector')
  const fieldSelector = query.get('fieldSelector')
  return {
    ...(namespace && { namespace }),
    ...(labelSelector && { labelSelector }),
    ...(fieldSelector && { fieldSelector }),
  }
}
