import { isRecord } from '../../../core/index.ts'
import {
  ensureFields,
  type Fields,
  fieldsAt,
  isUnset,
  recordsAt,
  setDefault,
  textAt,
} from '../fields.ts'
import { defaultPullPolicy } from './image-tag.ts'

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
export function fieldRefDefaults(source: Fields): void {
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
export function containerDefaults(container: Fields, hostNetwork: boolean): void {
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
