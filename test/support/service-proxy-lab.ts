import type { RequestListener } from 'node:http'
import { networkInterfaces } from 'node:os'
import { addonFeature } from '../../src/apiserver/features/addon.ts'
import type { Feature } from '../../src/apiserver/index.ts'
import {
  apiVersionOf,
  type ClusterView,
  type Kind,
  type KubeObject,
  wellKnownKinds,
} from '../../src/core/index.ts'
import { eventually } from './eventually.ts'
import type { HttpsCaller } from './https-caller.ts'
import { type InProcessServer, startInProcess } from './in-process-server.ts'
import { httpTarget, type TcpTarget, tcpTarget } from './tcp-target.ts'

/** An address of this machine that is not loopback, as a Pod's would be; `undefined` where there is none. */
export const outwardAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address

const soon = (): AbortSignal => AbortSignal.timeout(10_000)

/** What a Service of the lab may differ in. */
export interface AddonShape {
  readonly namespace?: string
  readonly annotations?: Record<string, string>
  /** Of the Service's port. */
  readonly portName?: string
  readonly port?: number
  /** The Pod's address and port; the backend's unless given. */
  readonly place?: { readonly host: string; readonly port: number }
}

const claimAnnotation = 'test.example/pod-ip'

/** The Pod with the address that it claims; admission of the server lets no such Pod in. */
function claiming<T extends KubeObject | undefined>(object: T): T {
  const podIP = object?.metadata.annotations?.[claimAnnotation]
  if (podIP === undefined) return object
  return { ...object, status: { ...Object(object?.['status']), podIP, podIPs: [{ ip: podIP }] } }
}

/** The service proxy on a cluster that has Pods with any address. */
export const gullibleAddonFeature: Feature = {
  name: addonFeature.name,
  open: ({ view, ...context }) => addonFeature.open({ ...context, view: new GullibleView(view) }),
}

class GullibleView implements ClusterView {
  readonly #view: ClusterView
  readonly write: ClusterView['write']
  readonly review: ClusterView['review']

  constructor(view: ClusterView) {
    this.#view = view
    this.write = (...args) => view.write(...args)
    this.review = (...args) => view.review(...args)
  }

  async get(...args: Parameters<ClusterView['get']>) {
    return claiming(await this.#view.get(...args))
  }

  async list(...args: Parameters<ClusterView['list']>) {
    const list = await this.#view.list(...args)
    return { ...list, items: list.items.map((each) => claiming(each)) }
  }

  async *watch(...args: Parameters<ClusterView['watch']>) {
    for await (const event of this.#view.watch(...args))
      yield { ...event, object: claiming(event.object) }
  }
}

/** An API server, and add-ons behind its proxy. */
export class ServiceProxyLab {
  readonly server: InProcessServer
  readonly #backends: TcpTarget[] = []

  constructor(server: InProcessServer) {
    this.server = server
  }

  /** With nothing but the proxy unless other features are given. */
  static async open(
    flags: readonly string[] = [],
    features: readonly Feature[] = [addonFeature],
  ): Promise<ServiceProxyLab> {
    return new ServiceProxyLab(await startInProcess({ flags, features, http2: true }))
  }

  /** Something that answers at an address like a Pod's. */
  async backend(answer: RequestListener): Promise<TcpTarget> {
    return this.#keep(await httpTarget(answer, outwardAddress))
  }

  /** The same, by whatever is written to its sockets. */
  async rawBackend(serve: Parameters<typeof tcpTarget>[0]): Promise<TcpTarget> {
    return this.#keep(await tcpTarget(serve, outwardAddress))
  }

  /** A Service with one ready Pod at the backend, once its endpoints are known. */
  async addon(name: string, backend: { readonly port: number }, shape: AddonShape = {}) {
    const { namespace = 'default', annotations = {}, portName, port = 80 } = shape
    const place = shape.place ?? { host: outwardAddress ?? '', port: backend.port }
    await this.create(wellKnownKinds.service, {
      metadata: { name, namespace, annotations },
      spec: {
        selector: { app: name },
        ports: [{ ...(portName && { name: portName }), port, targetPort: place.port }],
      },
    })
    await this.pod(name, place, namespace)
    await this.untilEndpoint(namespace, name, place.host)
    return `/api/v1/namespaces/${namespace}/services/${name}/proxy`
  }

  /** A ready Pod; `claim` is the address that `gullibleAddonFeature` sees. */
  async pod(
    name: string,
    { host, port }: { readonly host: string; readonly port: number },
    namespace = 'default',
    claim?: string,
  ): Promise<void> {
    const annotations = claim === undefined ? {} : { [claimAnnotation]: claim }
    const made = await this.create(wellKnownKinds.pod, {
      metadata: { name, namespace, labels: { app: name }, annotations },
      spec: { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: port }] }] },
    })
    const status = {
      phase: 'Running',
      podIP: host,
      podIPs: [{ ip: host }],
      conditions: [{ type: 'Ready', status: 'True' }],
    }
    const { view } = this.server.serving
    await view.write('update', { ...made, status }, { subresource: 'status' }, soon())
  }

  async create(
    kind: Kind,
    object: { readonly metadata: object; readonly [field: string]: unknown },
  ): Promise<KubeObject> {
    const whole = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object } as KubeObject
    return this.server.serving.view.write('create', whole, {}, soon())
  }

  async untilEndpoint(namespace: string, name: string, address: string): Promise<void> {
    await eventually(`endpoints of ${name}`, async () => {
      const { items } = await this.server.serving.view.list(
        wellKnownKinds.endpointSlice,
        { namespace, labelSelector: `kubernetes.io/service-name=${name}` },
        soon(),
      )
      return JSON.stringify(items).includes(`"${address}"`)
    })
  }

  /** A user who may do what the rules say in `default`. */
  async user(name: string, rules: readonly object[]): Promise<HttpsCaller> {
    const group = 'rbac.authorization.k8s.io'
    const rbac = (kind: string, resource: string) => ({
      group,
      version: 'v1',
      kind,
      resource,
      namespaced: true,
    })
    await this.create(rbac('Role', 'roles'), {
      metadata: { name, namespace: 'default' },
      rules,
    })
    await this.create(rbac('RoleBinding', 'rolebindings'), {
      metadata: { name, namespace: 'default' },
      roleRef: { apiGroup: group, kind: 'Role', name },
      subjects: [{ apiGroup: group, kind: 'User', name }],
    })
    return this.server.as(await this.server.issue(name))
  }

  async close(): Promise<void> {
    await this.server.close()
    for (const backend of this.#backends) await backend.close()
  }

  #keep(backend: TcpTarget): TcpTarget {
    this.#backends.push(backend)
    return backend
  }
}

/** The rights to everything that a proxied application may be asked. */
export const allOfProxy = (...verbs: string[]) => ({
  apiGroups: [''],
  resources: ['services/proxy', 'pods/proxy'],
  verbs,
})
