import { isRecord, type Preconditions } from '../../core/index.ts'
import { textsAt } from '../kinds/fields.ts'
import type { PropagationPolicy } from '../registry/finalizers.ts'
import { type FieldProblem, invalidValue, notSupported } from '../validation/index.ts'
import { type ApiCall, integerParameter, isTrue } from './api-call.ts'
import { decodeDeleteOptions } from './decode-sent.ts'
import { refuseProblems } from './refuse-options.ts'
import { dryRunProblems } from './write-parameters.ts'

/** What somebody who deletes may ask for. */
export interface DeleteOptions {
  readonly dryRun: boolean
  readonly preconditions: Preconditions
  readonly propagationPolicy?: PropagationPolicy
  /** True for the old way to ask that dependents are collected, which has an answer of its own. */
  readonly collectsDependents: boolean
}

/** The options as they were sent, wherever they stood. */
interface RawOptions {
  readonly policy: string | undefined
  readonly orphan: boolean | undefined
  readonly dryRun: readonly string[]
  readonly preconditions: Preconditions
}

const policies: readonly PropagationPolicy[] = ['Foreground', 'Background', 'Orphan']

function preconditionsOf(wanted: unknown): Preconditions {
  if (!isRecord(wanted)) return {}
  const { uid, resourceVersion } = wanted
  return {
    ...(typeof uid === 'string' && { uid }),
    ...(typeof resourceVersion === 'string' && { resourceVersion }),
  }
}

function fromBody(body: Record<string, unknown>, queryDryRun: readonly string[]): RawOptions {
  const { propagationPolicy: policy, orphanDependents: orphan, preconditions } = body
  return {
    policy: typeof policy === 'string' ? policy : undefined,
    orphan: typeof orphan === 'boolean' ? orphan : undefined,
    // A body makes Kubernetes forget the query, and so delete what was asked about in a dry run.
    dryRun: [...textsAt(body, 'dryRun'), ...queryDryRun],
    preconditions: preconditionsOf(preconditions),
  }
}

function fromQuery(query: URLSearchParams): RawOptions {
  integerParameter(query, 'gracePeriodSeconds')
  const orphan = query.get('orphanDependents')
  return {
    policy: query.get('propagationPolicy') ?? undefined,
    orphan: orphan === null ? undefined : isTrue(orphan),
    dryRun: query.getAll('dryRun'),
    preconditions: {},
  }
}

function policyProblems({ policy, orphan }: RawOptions): FieldProblem[] {
  const field = 'propagationPolicy'
  if (policy === undefined) return []
  const both = 'orphanDependents and deletionPropagation cannot be both set'
  return [
    ...(orphan === undefined ? [] : [invalidValue(field, policy, both)]),
    ...(policies.some((known) => known === policy)
      ? []
      : [notSupported(field, policy, [...policies, 'nil'])]),
  ]
}

function policyOf({ policy, orphan }: RawOptions): PropagationPolicy | undefined {
  if (orphan !== undefined) return orphan ? 'Orphan' : 'Background'
  return policies.find((known) => known === policy)
}

/** The options of a deletion, from the body if there is one, else from the query; throws a 400 or 422. */
export async function deleteOptionsOf(call: ApiCall): Promise<DeleteOptions> {
  const { query } = call.info
  const body = await decodeDeleteOptions(call)
  const raw = body ? fromBody(body, query.getAll('dryRun')) : fromQuery(query)
  refuseProblems('DeleteOptions', [...policyProblems(raw), ...dryRunProblems(raw.dryRun)])
  const propagationPolicy = policyOf(raw)
  return {
    dryRun: raw.dryRun.length > 0,
    preconditions: raw.preconditions,
    collectsDependents: raw.orphan === false,
    ...(propagationPolicy && { propagationPolicy }),
  }
}
