import { rbacKinds } from '../../authz/index.ts'
import { changeObject } from '../../client/index.ts'
import {
  createStaleWorkloads,
  machineAdmission,
  workloadRole,
} from '../../workload/server/index.ts'
import type { Feature } from '../feature.ts'

/** Processes on machines that are Pods to everybody else: `sallyport workload run`. */
export const workloadFeature: Feature = async ({ view, clock, signal }) => {
  const target = { view, kind: rbacKinds.clusterRole, key: workloadRole.metadata }
  await changeObject(
    target,
    (present) => (present ? { ...present, rules: workloadRole['rules'] } : workloadRole),
    signal,
  )
  return {
    admissions: [machineAdmission(view)],
    controllers: [createStaleWorkloads(view, clock)],
  }
}
