import { invalid } from '../../core/index.ts'
import { type FieldProblem, toCause } from '../validation/index.ts'

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
