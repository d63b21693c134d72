import { afterAll, beforeAll, describe } from 'vitest'
import { type ClusterAbilities, ClusterLab, type ClusterViewFixture } from './cluster-lab.suite.ts'
import { describeInformers } from './informer-cases.suite.ts'
import { describeObjects } from './object-cases.suite.ts'
import { describePreconditions } from './precondition-cases.suite.ts'
import { describeRefusals } from './refusal-cases.suite.ts'
import { describeReviews } from './review-cases.suite.ts'
import { describeSelectors } from './selector-cases.suite.ts'
import { describeSubresources } from './subresource-cases.suite.ts'
import { describeWatches } from './watch-cases.suite.ts'

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
    describeInformers(lab, abilities)
    describeRefusals(lab)
    describeReviews(lab, abilities)
  })
}
