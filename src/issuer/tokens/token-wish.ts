import { invalid, isRecord, type KubeObject, type StatusCause } from '../../core/index.ts'
import type { BoundObjectRef } from './bound-object.ts'

/** What the asker of a token wants, with the defaults filled in. */
export interface TokenWish {
  readonly audiences: readonly string[]
  /** The audiences without the defaults. */
  readonly requested: readonly string[]
  readonly seconds: number
  readonly bound?: BoundObjectRef
}

const defaultSeconds = 3_600
const shortestSeconds = 600
const longestSeconds = 2 ** 32

/** Reads the spec of a TokenRequest; throws a 422 with everything that is wrong with it. */
export function readTokenRequest(object: KubeObject, apiAudiences: readonly string[]): TokenWish {
  const spec = isRecord(object['spec']) ? object['spec'] : {}
  const wanted = spec['audiences']
  const requested = Array.isArray(wanted) ? wanted.filter((item) => typeof item === 'string') : []
  const { expirationSeconds } = spec
  const seconds = typeof expirationSeconds === 'number' ? expirationSeconds : defaultSeconds
  const causes = problemsOf(seconds)
  if (causes.length > 0)
    throw invalid({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', causes)
  const bound = boundRef(spec['boundObjectRef'])
  return {
    audiences: requested.length > 0 ? requested : apiAudiences,
    requested,
    seconds,
    ...(bound && { bound }),
  }
}

function problemsOf(seconds: number): StatusCause[] {
  const problem = (why: string): StatusCause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${seconds}: ${why}`,
    field: 'spec.expirationSeconds',
  })
  if (seconds < shortestSeconds) return [problem('may not specify a duration less than 10 minutes')]
  if (seconds > longestSeconds)
    return [problem('may not specify a duration larger than 2^32 seconds')]
  return []
}

function boundRef(value: unknown): BoundObjectRef | undefined {
  if (!isRecord(value)) return undefined
  const text = (field: string): string => {
    const found = value[field]
    return typeof found === 'string' ? found : ''
  }
  return {
    kind: text('kind'),
    apiVersion: text('apiVersion'),
    name: text('name'),
    uid: text('uid'),
  }
}
