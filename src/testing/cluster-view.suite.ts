import { afterAll, beforeAll, describe } from 'vitest'
import {
  type ClusterAbilities,
  ClusterLab,
  type ClusterViewFixture,
} from './cluster-view/cluster-lab.suite.ts'
import { describeObjects } from './cluster-view/object-cases.suite.ts'
import { describePreconditions } from './cluster-view/precondition-cases.suite.ts'
import { describeRefusals } from './cluster-view/refusal-cases.suite.ts'
import { describeReviews } from './cluster-view/review-cases.suite.ts'
import { describeSelectors } from './cluster-view/selector-cases.suite.ts'
import { describeSubresources } from './cluster-view/subresource-cases.suite.ts'
import { describeWatches } from './cluster-view/watch-cases.suite.ts'

export type { ClusterViewFixture }

/** Everything that `ClusterView` promises, whichever cluster is behind it. */
export function describeClusterView(
  name: string,
  open: () => Promise<ClusterViewFixture>,
  abilities: ClusterAbilities = {},
): void {
  describe(`ClusterView on ${name}`, () => {
    const lab = new ClusterLab(open)
    beforeAll(() => lab.open())
    afterAll(() => lab.close())

    describeObjects(lab)
    describePreconditions(lab)
    describeSubresources(lab)
    describeSelectors(lab)
    describeWatches(lab, abilities)
    describeRefusals(lab)
    describeReviews(lab, abilities)
  })
}
