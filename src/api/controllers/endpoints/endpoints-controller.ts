import type { ClusterView, KubeObject } from '../../../core/index.ts'
import { endpointSlice, endpoints, node, pod, service } from '../../kinds/index.ts'
import { type LabelSelector, labelSelectorFromSet } from '../../selectors/index.ts'
import { type Controller } from '../controller.ts'
import { Mirror, type MirrorChange } from '../mirror.ts'
import { created, deleted, forEachAtOnce } from '../run-controller.ts'
import { endpointsObject, isManaged } from './endpoints.ts'
import {
  isMirroredSlice,
  maxMirrored,
  mirroredGroups,
  mirroredTemplate,
  wantsMirror,
} from './mirrored-slices.ts'
import { planSlices, type SliceChanges, sliceLabels } from './plan-slices.ts'
import { type PodInfo, podInfo, type ServiceInfo, serviceInfo } from './pod-and-service.ts'
import { isSelectedSlice, selectedGroups, selectedTemplate } from './selected-slices.ts'

const maxPerSlice = 100
const zoneLabel = 'topology.kubernetes.io/zone'

const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`

/** Names of objects by namespace and something that they have in common. */
class NameIndex {
  readonly #names = new Map<string, Set<string>>()

  get(namespace: string, mark: string): Iterable<string> {
    return this.#names.get(`${namespace}/${mark}`) ?? []
  }

  /** Files a name under its marks of now, and no longer under those of before. */
  move(
    { namespace, name }: { readonly namespace: string; readonly name: string },
    before: readonly string[],
    after: readonly string[],
  ): void {
    for (const mark of before) {
      const key = `${namespace}/${mark}`
      const names = this.#names.get(key)
      names?.delete(name)
      if (names?.size === 0) this.#names.delete(key)
    }
    for (const mark of after) {
      const key = `${namespace}/${mark}`
      this.#names.set(key, (this.#names.get(key) ?? new Set()).add(name))
    }
  }
}

const marksOf = (labels: Readonly<Record<string, string>> | undefined): string[] =>
  Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`)

/** One label of the selector: a Pod without it need not be compared with the rest. */
const selectorMark = (info: ServiceInfo | undefined): string[] =>
  marksOf(info?.selector).toSorted().slice(0, 1)

const serviceNameOf = (slice: KubeObject | undefined): string[] => {
  const name = slice?.metadata.labels?.[sliceLabels.serviceName]
  return name === undefined ? [] : [name]
}

const sameButLabels = (a: PodInfo, b: PodInfo): boolean =>
  JSON.stringify({ ...a, labels: {} }) === JSON.stringify({ ...b, labels: {} })

/** In one of the lists only. */
const difference = (a: readonly string[], b: readonly string[]): string[] => {
  const [inA, inB] = [new Set(a), new Set(b)]
  return [...a.filter((key) => !inB.has(key)), ...b.filter((key) => !inA.has(key))]
}

class EndpointsKeeper {
  readonly #view: ClusterView
  /** Services that were seen to go, whose Endpoints go with them whoever wrote those. */
  readonly #gone = new Set<string>()
  readonly #selectors = new WeakMap<ServiceInfo, LabelSelector>()
  readonly #podsByLabel = new NameIndex()
  readonly #servicesByLabel = new NameIndex()
  readonly #slicesByService = new NameIndex()

  readonly services = new Mirror<ServiceInfo>({
    kind: service.kind,
    project: serviceInfo,
    keysOf: ({ namespace, name, before, after }) => {
      const key = keyOf(namespace, name)
      this.#servicesByLabel.move({ namespace, name }, selectorMark(before), selectorMark(after))
      if (after === undefined) this.#gone.add(key)
      else this.#gone.delete(key)
      return [key]
    },
  })
  readonly pods = new Mirror<PodInfo>({
    kind: pod.kind,
    project: podInfo,
    keysOf: ({ namespace, name, before, after }) => {
      this.#podsByLabel.move({ namespace, name }, marksOf(before?.labels), marksOf(after?.labels))
      const [left, joined] = [this.#servicesOf(before), this.#servicesOf(after)]
      // A Pod of which only labels changed matters to the Services that it joins or leaves.
      if (before && after && sameButLabels(before, after)) return difference(left, joined)
      return [...left, ...joined]
    },
  })
  readonly zones = new Mirror<string | undefined>({
    kind: node.kind,
    project: ({ metadata }) => metadata.labels?.[zoneLabel],
    keysOf: (change) => this.#servicesOnNode(change),
  })
  readonly slices = new Mirror<KubeObject>({
    kind: endpointSlice.kind,
    query: { labelSelector: `${sliceLabels.serviceName},${sliceLabels.managedBy}` },
    project: (object) => object,
    keysOf: ({ namespace, name, before, after }) => {
      const [left, joined] = [serviceNameOf(before), serviceNameOf(after)]
      this.#slicesByService.move({ namespace, name }, left, joined)
      return [...left, ...joined].map((each) => keyOf(namespace, each))
    },
  })
  readonly endpoints = new Mirror<KubeObject>({
    kind: endpoints.kind,
    project: (object) => object,
    keysOf: ({ namespace, name }) => [keyOf(namespace, name)],
  })

  constructor(view: ClusterView) {
    this.#view = view
  }

  async reconcile(key: string, signal: AbortSignal): Promise<void> {
    const [namespace = '', name = ''] = key.split('/')
    const info = this.services.get(namespace, name)
    const written = this.endpoints.get(namespace, name)
    if (info?.selector !== undefined && !info.externalName) await this.#select(info, signal)
    const source = info !== undefined && info.selector === undefined ? written : undefined
    await this.#mirror(namespace, name, source, signal)
    if (info === undefined) await this.#forget(key, written, signal)
  }

  /** Removes the Endpoints of a Service that is gone; its slices are collected by their owner. */
  async #forget(key: string, written: KubeObject | undefined, signal: AbortSignal): Promise<void> {
    if (written !== undefined && (this.#gone.has(key) || isManaged(written))) {
      await deleted(this.#view.write('delete', written, {}, signal))
    }
    this.#gone.delete(key)
  }

  /** Makes slices and Endpoints from the Pods that a Service selects. */
  async #select(info: ServiceInfo, signal: AbortSignal): Promise<void> {
    const pods = this.#podsOf(info)
    const groups = selectedGroups(info, pods, (name) => this.zones.get('', name))
    const existing = this.#slicesOf(info.namespace, info.name, isSelectedSlice)
    const changes = planSlices(groups, existing, selectedTemplate(info), maxPerSlice)
    // What is made for a Service on its way out would be collected at once.
    await this.#write(info.deleting ? { ...changes, create: [] } : changes, signal)
    const before = this.endpoints.get(info.namespace, info.name)
    const after = endpointsObject(info, pods, before)
    if (before === undefined) this.#put(this.endpoints, await created(this.#create(after, signal)))
    else if (after !== before) this.#put(this.endpoints, await this.#update(after, signal))
  }

  /** Makes slices from hand-written Endpoints, or removes them when there is nothing to mirror. */
  async #mirror(
    namespace: string,
    name: string,
    source: KubeObject | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const existing = this.#slicesOf(namespace, name, isMirroredSlice)
    const changes =
      source !== undefined && wantsMirror(source)
        ? planSlices(mirroredGroups(source), existing, mirroredTemplate(source), maxMirrored)
        : { create: [], update: [], delete: existing }
    await this.#write(changes, signal)
  }

  #slicesOf(
    namespace: string,
    name: string,
    isOurs: (labels: Record<string, string> | undefined) => boolean,
  ): KubeObject[] {
    const slices = [...this.#slicesByService.get(namespace, name)].flatMap(
      (slice) => this.slices.get(namespace, slice) ?? [],
    )
    return slices.filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined && isOurs(metadata.labels),
    )
  }

  async #write(changes: SliceChanges, signal: AbortSignal): Promise<void> {
    await forEachAtOnce(changes.create, async (slice) => {
      this.#put(this.slices, await created(this.#create(slice, signal)))
    })
    await forEachAtOnce(changes.update, async (slice) => {
      this.#put(this.slices, await this.#update(slice, signal))
    })
    await forEachAtOnce(changes.delete, async (slice) => {
      await deleted(this.#view.write('delete', slice, {}, signal))
      this.slices.remove(slice.metadata)
    })
  }

  #create(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    return this.#view.write('create', object, {}, signal)
  }

  #update(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    return this.#view.write('update', object, {}, signal)
  }

  /** What was written counts at once, so that the next look does not write it again. */
  #put(mirror: Mirror<KubeObject>, object: KubeObject | undefined): void {
    if (object !== undefined) mirror.put(object)
  }

  #matcherOf(info: ServiceInfo): (pod: PodInfo) => boolean {
    const matches = this.#selectors.get(info) ?? labelSelectorFromSet(info.selector ?? {})
    this.#selectors.set(info, matches)
    return ({ labels }) => matches(labels)
  }

  #servicesOf(info: PodInfo | undefined): string[] {
    if (info === undefined) return []
    const { namespace } = info
    return marksOf(info.labels).flatMap((mark) =>
      [...this.#servicesByLabel.get(namespace, mark)]
        .filter((name) => {
          const each = this.services.get(namespace, name)
          return each?.selector !== undefined && this.#matcherOf(each)(info)
        })
        .map((name) => keyOf(namespace, name)),
    )
  }

  #podsOf(info: ServiceInfo): PodInfo[] {
    const [mark = ''] = selectorMark(info)
    return [...this.#podsByLabel.get(info.namespace, mark)]
      .flatMap((name) => this.pods.get(info.namespace, name) ?? [])
      .filter(this.#matcherOf(info))
  }

  #servicesOnNode({ name }: MirrorChange<string | undefined>): string[] {
    return [...this.pods.all()]
      .filter(({ nodeName }) => nodeName === name)
      .flatMap((info) => this.#servicesOf(info))
  }
}

/** Keeps EndpointSlices and Endpoints in step with Services and Pods, and mirrors hand-written Endpoints. */
export function createEndpointsController(view: ClusterView): Controller {
  const keeper = new EndpointsKeeper(view)
  return {
    name: 'endpoints',
    watches: [keeper.services, keeper.pods, keeper.zones, keeper.slices, keeper.endpoints],
    async reconcile(key, signal) {
      await keeper.reconcile(key, signal)
      return undefined
    },
  }
}
