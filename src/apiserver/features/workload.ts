import { rbacKinds } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import { createStaleWorkloads, workloadRole } from '../../workload/server/index.ts'
import type { Feature } from '../feature.ts'

/** Local processes as Pods: `sallyport workload run`. */
export const workloadFeature: Feature = {
  name: 'workload',
  open: async ({ view, clock, signal }) => ({
    controllers: [createStaleWorkloads(view, clock)],
    start: async () => {
      const target = { view, kind: rbacKinds.clusterRole, key: workloadRole.metadata }
      await changeObject(
        target,
        (present) => (present ? { ...present, rules: workloadRole['rules'] } : workloadRole),
        signal,
      )
    },
  }),
}
