import { isRecord, type KubeObject } from '../../../core/index.ts'
import {
  ensureFields,
  type Fields,
  flagAt,
  isUnset,
  numberAt,
  recordsAt,
  setDefault,
  textAt,
} from '../fields.ts'
import { containerDefaults } from './container-defaults.ts'
import { volumeDefaults } from './volume-defaults.ts'

const graceSeconds = 30

/** The older name of a field and its newer one say the same. */
function alignServiceAccount(spec: Fields): void {
  const name = textAt(spec, 'serviceAccountName') || textAt(spec, 'serviceAccount')
  if (!name) return
  spec['serviceAccountName'] = name
  spec['serviceAccount'] = name
}

/** The single address and the list agree; the single one counts when they differ. */
function alignAddresses(status: Fields, single: string, list: string): void {
  const ip = textAt(status, single)
  const first = recordsAt(status, list)[0]
  if (ip && ip !== textAt(first ?? {}, 'ip')) status[list] = [{ ip }]
  else if (first && textAt(first, 'ip')) status[single] = textAt(first, 'ip')
}

function specDefaults(spec: Fields): void {
  setDefault(spec, 'dnsPolicy', 'ClusterFirst')
  setDefault(spec, 'restartPolicy', 'Always')
  if (!isRecord(spec['securityContext'])) spec['securityContext'] = {}
  setDefault(spec, 'terminationGracePeriodSeconds', graceSeconds)
  if ((numberAt(spec, 'terminationGracePeriodSeconds') ?? 0) < 0) {
    spec['terminationGracePeriodSeconds'] = 1
  }
  setDefault(spec, 'schedulerName', 'default-scheduler')
  if (isUnset(spec['enableServiceLinks'])) spec['enableServiceLinks'] = true
  alignServiceAccount(spec)
}

/** Fills in Kubernetes' defaults of a pod, in place. */
export function podDefaults(draft: KubeObject): void {
  const spec = ensureFields(draft, 'spec')
  specDefaults(spec)
  const hostNetwork = flagAt(spec, 'hostNetwork')
  for (const list of ['containers', 'initContainers']) {
    for (const container of recordsAt(spec, list)) containerDefaults(container, hostNetwork)
  }
  for (const container of recordsAt(spec, 'ephemeralContainers'))
    containerDefaults(container, false)
  for (const volume of recordsAt(spec, 'volumes')) volumeDefaults(volume)
  const status = ensureFields(draft, 'status')
  alignAddresses(status, 'podIP', 'podIPs')
}
