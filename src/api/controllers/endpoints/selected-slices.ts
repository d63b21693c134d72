import {
  type Endpoint,
  type EndpointGroup,
  type EndpointPort,
  groupKey,
  type SliceTemplate,
  sliceLabels,
} from './plan-slices.ts'
import {
  type AddressType,
  hostnameIn,
  ipsOfType,
  type PodInfo,
  podReference,
  portOnPod,
  portShape,
  type ServiceInfo,
} from './pod-and-service.ts'

const managedBy = 'endpointslice-controller.k8s.io'

/** Whether a slice is one that this controller makes from a Service's selector. */
export const isSelectedSlice = (labels: Readonly<Record<string, string>> | undefined): boolean =>
  labels?.[sliceLabels.managedBy] === managedBy

const reserved: ReadonlySet<string> = new Set(Object.values(sliceLabels))

/** What all slices that a Service's selector makes have in common. */
export function selectedTemplate(service: ServiceInfo): SliceTemplate {
  const own = Object.entries(service.labels).filter(([key]) => !reserved.has(key))
  return {
    namespace: service.namespace,
    generateName: `${service.name}-`,
    labels: {
      ...Object.fromEntries(own),
      [sliceLabels.serviceName]: service.name,
      [sliceLabels.managedBy]: managedBy,
      ...(service.headless && { [sliceLabels.headless]: '' }),
    },
    annotations: {},
    owner: {
      apiVersion: 'v1',
      kind: 'Service',
      name: service.name,
      uid: service.uid,
      controller: true,
      blockOwnerDeletion: true,
    },
  }
}

function portsOn(service: ServiceInfo, pod: PodInfo): EndpointPort[] {
  return service.ports.flatMap((servicePort) => {
    const port = portOnPod(servicePort, pod)
    if (port === undefined) return []
    const { name, protocol, appProtocol } = servicePort
    return [{ name, port, protocol, ...(appProtocol !== undefined && { appProtocol }) }]
  })
}

function endpointOf(
  service: ServiceInfo,
  pod: PodInfo,
  addresses: readonly string[],
  zone: string | undefined,
): Endpoint {
  const { ready: serving, terminating } = pod
  const hostname = hostnameIn(service, pod)
  return {
    addresses,
    conditions: {
      ready: service.publishNotReady || (serving && !terminating),
      serving,
      terminating,
    },
    ...(hostname !== undefined && { hostname }),
    ...(pod.nodeName !== '' && { nodeName: pod.nodeName }),
    ...(zone !== undefined && { zone }),
    targetRef: podReference(pod),
  }
}

/**
 * The endpoints that a Service has in its Pods, in groups that can share slices. A family without
 * endpoints has an empty group, so that the Service has a slice at all.
 */
export function selectedGroups(
  service: ServiceInfo,
  pods: Iterable<PodInfo>,
  zoneOf: (nodeName: string) => string | undefined,
): EndpointGroup[] {
  const groups = new Map<string, EndpointGroup & { endpoints: Endpoint[] }>()
  // By family and shape, because all ports of the Service are in the key of a group.
  const known = new Map<string, EndpointGroup & { endpoints: Endpoint[] }>()
  const groupOf = (addressType: AddressType, pod: PodInfo) => {
    const shape = `${addressType} ${portShape(pod)}`
    const found = known.get(shape)
    if (found) return found
    const ports = portsOn(service, pod)
    const key = groupKey(addressType, ports)
    const group = groups.get(key) ?? { addressType, ports, endpoints: [] }
    groups.set(key, group)
    known.set(shape, group)
    return group
  }
  for (const pod of pods) {
    if (pod.finished) continue
    for (const addressType of service.addressTypes) {
      const addresses = ipsOfType(pod, addressType)
      if (addresses.length === 0) continue
      const group = groupOf(addressType, pod)
      group.endpoints.push(endpointOf(service, pod, addresses, zoneOf(pod.nodeName)))
    }
  }
  const found = [...groups.values()]
  const empty = service.addressTypes
    .filter((type) => found.every(({ addressType }) => addressType !== type))
    .map((addressType) => ({ addressType, ports: [], endpoints: [] }))
  return [...found, ...empty]
}
