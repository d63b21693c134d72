import { createKubeClient, transportFromKubeconfig } from '../../src/client/index.ts'
import { apiVersionOf, type Kind, type KubeObject, wellKnownKinds } from '../../src/core/index.ts'
import { loadContext } from '../../src/kubeconfig/index.ts'
import type { Place } from './backend.ts'

const namespace = 'default'
const servicePort = 80

/** The path of the service proxy to a Service of this name. */
export const proxyPath = (service: string, path: string): string =>
  `/api/v1/namespaces/${namespace}/services/${service}:${servicePort}/proxy/${path}`

/**
 * Makes a Service of an application, with all that the controllers and the kubelet of a cluster would write: of
 * endpoints, ours reads slices and kube-apiserver the older kind.
 */
export async function publish(
  kubeconfig: string,
  service: string,
  { address, port }: Place,
): Promise<void> {
  const signal = AbortSignal.timeout(60_000)
  const transport = await transportFromKubeconfig(
    await loadContext({ explicitPath: kubeconfig, home: '' }),
  )
  const client = createKubeClient({ transport })
  const create = (kind: Kind, more: object, labels = {}): Promise<KubeObject> => {
    const metadata = { name: service, namespace, labels }
    const object = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, ...more }
    return client.create(kind, object, {}, signal)
  }
  const targetRef = { kind: 'Pod', namespace, name: service }
  try {
    const containers = [{ name: 'app', image: 'app', ports: [{ containerPort: port }] }]
    const pod = await create(wellKnownKinds.pod, { spec: { containers } })
    const status = { phase: 'Running', podIP: address, podIPs: [{ ip: address }] }
    const options = { subresource: 'status' }
    await client.update(wellKnownKinds.pod, { ...pod, status }, options, signal)
    await create(wellKnownKinds.service, { spec: { ports: [{ port: servicePort }] } })
    const endpoint = { addresses: [address], conditions: { ready: true }, targetRef }
    await create(
      wellKnownKinds.endpointSlice,
      { addressType: 'IPv4', ports: [{ name: '', port }], endpoints: [endpoint] },
      { 'kubernetes.io/service-name': service },
    )
    await create(wellKnownKinds.endpoints, {
      subsets: [{ addresses: [{ ip: address, targetRef }], ports: [{ port }] }],
    })
  } finally {
    transport.destroy()
  }
}
