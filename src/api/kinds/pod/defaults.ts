import { isRecord, type KubeObject } from '../../../core/index.ts'
import { quantityNanos } from '../../validation/quantities.ts'
import {
  ensureFields,
  type Fields,
  fieldsAt,
  flagAt,
  isUnset,
  numberAt,
  recordsAt,
  setDefault,
  textAt,
} from '../fields.ts'

const component = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const domain = '(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9-]+)*(?::[0-9]+)?/)?'
const reference = new RegExp(
  `^${domain}${component}(?:/${component})*(?::([\\w][\\w.-]{0,127}))?(@[a-zA-Z0-9+._-]+:[0-9a-fA-F]{32,})?$`,
)

/** The tag of an image's name: `latest` when neither tag nor digest is given, empty for no name. */
export function imageTag(image: string): string {
  // Longer names are refused by every registry; the limit also bounds the work of the pattern.
  if (image.length > 4096) return ''
  const match = reference.exec(image)
  if (!match) return ''
  const [, tag, digest] = match
  return tag ?? (digest === undefined ? 'latest' : '')
}

/** How to pull an image when nobody said: what moves is asked for each time. */
export const defaultPullPolicy = (image: string): string =>
  imageTag(image) === 'latest' ? 'Always' : 'IfNotPresent'

function handlerDefaults(handler: Fields): void {
  const httpGet = handler['httpGet']
  if (isRecord(httpGet)) {
    setDefault(httpGet, 'path', '/')
    setDefault(httpGet, 'scheme', 'HTTP')
  }
  const grpc = handler['grpc']
  if (isRecord(grpc)) grpc['service'] ??= ''
}

const probeNumbers = {
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
}

function probeDefaults(container: Fields, key: string): void {
  const probe = container[key]
  if (!isRecord(probe)) return
  handlerDefaults(probe)
  for (const [field, value] of Object.entries(probeNumbers)) {
    if (isUnset(probe[field]) || probe[field] === 0) probe[field] = value
  }
}

/** Fills in what a reference to a field of the pod leaves out. */
function fieldRefDefaults(source: Fields): void {
  if (isRecord(source['fieldRef'])) setDefault(source['fieldRef'], 'apiVersion', 'v1')
  if (isRecord(source['resourceFieldRef'])) setDefault(source['resourceFieldRef'], 'divisor', '0')
}

/** What a container may use at most it also asks for, unless it asks for something else. */
function resourceDefaults(container: Fields): void {
  const resources = ensureFields(container, 'resources')
  if (!isRecord(resources['limits'])) return
  resources['requests'] = { ...resources['limits'], ...fieldsAt(resources, 'requests') }
}

/** Fills in Kubernetes' defaults of one container, in place. */
function containerDefaults(container: Fields, hostNetwork: boolean): void {
  setDefault(container, 'imagePullPolicy', defaultPullPolicy(textAt(container, 'image')))
  setDefault(container, 'terminationMessagePath', '/dev/termination-log')
  setDefault(container, 'terminationMessagePolicy', 'File')
  for (const port of recordsAt(container, 'ports')) {
    setDefault(port, 'protocol', 'TCP')
    if (hostNetwork && (isUnset(port['hostPort']) || port['hostPort'] === 0)) {
      port['hostPort'] = port['containerPort']
    }
  }
  for (const variable of recordsAt(container, 'env')) {
    fieldRefDefaults(fieldsAt(variable, 'valueFrom'))
  }
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    probeDefaults(container, probe)
  }
  const lifecycle = fieldsAt(container, 'lifecycle')
  for (const hook of ['postStart', 'preStop']) handlerDefaults(fieldsAt(lifecycle, hook))
  resourceDefaults(container)
}

/** 0644 as JSON writes it. */
const fileMode = 420
const tokenSeconds = 3600

/** Fields that the sources of volumes have unless told otherwise. */
const sourceDefaults: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  secret: { defaultMode: fileMode },
  configMap: { defaultMode: fileMode },
  downwardAPI: { defaultMode: fileMode },
  projected: { defaultMode: fileMode },
  iscsi: { iscsiInterface: 'default' },
  rbd: { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' },
  azureDisk: { cachingMode: 'ReadWrite', fsType: 'ext4', readOnly: false, kind: 'Shared' },
  scaleIO: { storageMode: 'ThinProvisioned', fsType: 'xfs' },
}

function projectedDefaults(projected: Fields): void {
  for (const source of recordsAt(projected, 'sources')) {
    const token = source['serviceAccountToken']
    if (isRecord(token)) setDefault(token, 'expirationSeconds', tokenSeconds)
    for (const item of recordsAt(fieldsAt(source, 'downwardAPI'), 'items')) fieldRefDefaults(item)
  }
}

function specialDefaults(volume: Fields): void {
  const { hostPath, image } = volume
  if (isRecord(hostPath)) hostPath['type'] ??= ''
  if (isRecord(image)) {
    const isMoving = imageTag(textAt(image, 'reference')) === 'latest'
    setDefault(image, 'pullPolicy', isMoving ? 'Always' : 'IfNotPresent')
  }
  const claim = fieldsAt(fieldsAt(volume, 'ephemeral'), 'volumeClaimTemplate')
  if (isRecord(claim['spec'])) setDefault(claim['spec'], 'volumeMode', 'Filesystem')
}

/** Fills in Kubernetes' defaults of one volume, in place. */
function volumeDefaults(volume: Fields): void {
  const hasSource = Object.keys(volume).some((key) => key !== 'name' && !isUnset(volume[key]))
  if (!hasSource) volume['emptyDir'] = {}
  for (const [source, defaults] of Object.entries(sourceDefaults)) {
    const found = volume[source]
    if (!isRecord(found)) continue
    for (const [field, value] of Object.entries(defaults)) setDefault(found, field, value)
  }
  specialDefaults(volume)
  projectedDefaults(fieldsAt(volume, 'projected'))
  for (const item of recordsAt(fieldsAt(volume, 'downwardAPI'), 'items')) fieldRefDefaults(item)
}

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

/** How long a pod stays on a node that has gone quiet. */
const evictionSeconds = 300
const quietTaints = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']

const tolerates = (toleration: Fields, key: string): boolean =>
  [key, ''].includes(textAt(toleration, 'key')) &&
  ['NoExecute', ''].includes(textAt(toleration, 'effect'))

/** What Kubernetes' default admission adds: patience with quiet nodes. */
export function addTolerations(spec: Fields): void {
  const tolerations = recordsAt(spec, 'tolerations')
  const missing = quietTaints.filter(
    (key) => !tolerations.some((toleration) => tolerates(toleration, key)),
  )
  if (missing.length === 0) return
  spec['tolerations'] = [
    ...tolerations,
    ...missing.map((key) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: evictionSeconds,
    })),
  ]
}

/** What Kubernetes' default admission adds: the priority of pods without a class of their own. */
export function addPriority(spec: Fields): void {
  if (isUnset(spec['priority'])) spec['priority'] = 0
  if (isUnset(spec['preemptionPolicy'])) spec['preemptionPolicy'] = 'PreemptLowerPriority'
}

type Amounts = Map<string, bigint>

function amountsIn(resources: Fields, key: string): Amounts {
  const found: Amounts = new Map()
  for (const name of ['cpu', 'memory']) {
    const nanos = quantityNanos(fieldsAt(resources, key)[name]) ?? 0n
    if (nanos > 0n) found.set(name, nanos)
  }
  return found
}

function addTo(total: Amounts, more: Amounts): void {
  for (const [name, nanos] of more) total.set(name, (total.get(name) ?? 0n) + nanos)
}

/** How safe a pod's resources are: `Guaranteed`, `Burstable` or `BestEffort`. */
export function qosClassOf(spec: Fields): string {
  const containers = [...recordsAt(spec, 'containers'), ...recordsAt(spec, 'initContainers')]
  const own = fieldsAt(spec, 'resources')
  const parts =
    Object.keys(own).length > 0 ? [own] : containers.map((one) => fieldsAt(one, 'resources'))
  const [requests, limits]: [Amounts, Amounts] = [new Map(), new Map()]
  let isBounded = true
  for (const part of parts) {
    const partLimits = amountsIn(part, 'limits')
    if (partLimits.size < 2) isBounded = false
    addTo(requests, amountsIn(part, 'requests'))
    addTo(limits, partLimits)
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort'
  const isEqual =
    requests.size === limits.size &&
    [...requests].every(([name, nanos]) => limits.get(name) === nanos)
  return isBounded && isEqual ? 'Guaranteed' : 'Burstable'
}
