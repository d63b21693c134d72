import { isDeepStrictEqual } from 'node:util'
import type { Informer } from '../../../client/index.ts'
import type { ClusterView, KubeObject } from '../../../core/index.ts'
import { endpointSlice, endpoints, node, pod, service } from '../../kinds/index.ts'
import { type LabelSelector, labelSelectorFromSet } from '../../selectors/index.ts'
import {
  type Controller,
  type ControllerContext,
  created,
  deleted,
  forEachAtOnce,
} from '../run-controller.ts'
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

/** Index terms: labels in a namespace. */
const labelTerms = (
  namespace: string,
  labels: Readonly<Record<string, string>> | undefined,
): string[] => Object.entries(labels ?? {}).map(([key, value]) => `${namespace}/${key}=${value}`)

/** One label of the selector: a Pod without it need not be compared with the rest. */
const selectorTerm = ({ namespace, selector }: ServiceInfo): string[] =>
  labelTerms(namespace, selector).toSorted().slice(0, 1)

/** The Service of a slice, if it names one. */
const serviceOfSlice = (slice: KubeObject | undefined): string[] => {
  const name = slice?.metadata.labels?.[sliceLabels.serviceName]
  return name === undefined ? [] : [keyOf(slice?.metadata.namespace ?? '', name)]
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
  readonly #services: Informer<ServiceInfo>
  readonly #pods: Informer<PodInfo>
  readonly #zones: Informer<string>
  readonly #slices: Informer<KubeObject>
  readonly #endpoints: Informer<KubeObject>

  constructor(view: ClusterView, { watch }: ControllerContext) {
    this.#view = view
    this.#services = watch<ServiceInfo>({
      kind: service.kind,
      project: serviceInfo,
      equals: isDeepStrictEqual,
      index: selectorTerm,
      keysOf: ({ namespace, name, after }) => {
        const key = keyOf(namespace, name)
        if (after === undefined) this.#gone.add(key)
        else this.#gone.delete(key)
        return [key]
      },
    })
    this.#pods = watch<PodInfo>({
      kind: pod.kind,
      project: podInfo,
      equals: isDeepStrictEqual,
      index: ({ namespace, labels }) => labelTerms(namespace, labels),
      keysOf: ({ before, after }) => {
        const [left, joined] = [this.#servicesOf(before), this.#servicesOf(after)]
        // A Pod of which only labels changed matters to the Services that it joins or leaves.
        if (before && after && sameButLabels(before, after)) return difference(left, joined)
        return [...left, ...joined]
      },
    })
    this.#zones = watch<string>({
      kind: node.kind,
      project: ({ metadata }) => metadata.labels?.[zoneLabel],
      keysOf: ({ name }) => this.#servicesOnNode(name),
    })
    this.#slices = watch<KubeObject>({
      kind: endpointSlice.kind,
      query: { labelSelector: `${sliceLabels.serviceName},${sliceLabels.managedBy}` },
      project: (object) => object,
      index: serviceOfSlice,
      keysOf: ({ before, after }) => [...serviceOfSlice(before), ...serviceOfSlice(after)],
    })
    this.#endpoints = watch<KubeObject>({
      kind: endpoints.kind,
      project: (object) => object,
      keysOf: ({ namespace, name }) => [keyOf(namespace, name)],
    })
  }

  async reconcile(key: string, signal: AbortSignal): Promise<void> {
    const [namespace = '', name = ''] = key.split('/')
    const info = this.#services.get({ namespace, name })
    const written = this.#endpoints.get({ namespace, name })
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
    const groups = selectedGroups(info, pods, (name) => this.#zones.get({ name }))
    const existing = this.#slicesOf(info.namespace, info.name, isSelectedSlice)
    const changes = planSlices(groups, existing, selectedTemplate(info), maxPerSlice)
    // What is made for a Service on its way out would be collected at once.
    await this.#write(info.deleting ? { ...changes, create: [] } : changes, signal)
    const before = this.#endpoints.get(info)
    const after = endpointsObject(info, pods, before)
    if (before === undefined) applied(this.#endpoints, await created(this.#create(after, signal)))
    else if (after !== before) applied(this.#endpoints, await this.#update(after, signal))
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
    return [...this.#slices.byIndex(keyOf(namespace, name))].filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined && isOurs(metadata.labels),
    )
  }

  async #write(changes: SliceChanges, signal: AbortSignal): Promise<void> {
    await forEachAtOnce(changes.create, async (slice) => {
      applied(this.#slices, await created(this.#create(slice, signal)))
    })
    await forEachAtOnce(changes.update, async (slice) => {
      applied(this.#slices, await this.#update(slice, signal))
    })
    await forEachAtOnce(changes.delete, async (slice) => {
      await deleted(this.#view.write('delete', slice, {}, signal))
      this.#slices.applied(slice, 'delete')
    })
  }

  #create(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    return this.#view.write('create', object, {}, signal)
  }

  #update(object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
    return this.#view.write('update', object, {}, signal)
  }

  #matcherOf(info: ServiceInfo): (pod: PodInfo) => boolean {
    const matches = this.#selectors.get(info) ?? labelSelectorFromSet(info.selector ?? {})
    this.#selectors.set(info, matches)
    return ({ labels }) => matches(labels)
  }

  #servicesOf(info: PodInfo | undefined): string[] {
    if (info === undefined) return []
    return labelTerms(info.namespace, info.labels).flatMap((term) =>
      [...this.#services.byIndex(term)]
        .filter((each) => this.#matcherOf(each)(info))
        .map(({ namespace, name }) => keyOf(namespace, name)),
    )
  }

  #podsOf(info: ServiceInfo): PodInfo[] {
    const [term = ''] = selectorTerm(info)
    return [...this.#pods.byIndex(term)].filter(this.#matcherOf(info))
  }

  #servicesOnNode(name: string): string[] {
    return [...this.#pods.list()]
      .filter(({ nodeName }) => nodeName === name)
      .flatMap((info) => this.#servicesOf(info))
  }
}

/** Makes a write visible at once, so that the next reconcile does not repeat it. */
function applied(informer: Informer, object: KubeObject | undefined): void {
  if (object !== undefined) informer.applied(object)
}

/** Keeps EndpointSlices and Endpoints in step with Services and Pods, and mirrors hand-written Endpoints. */
export function createEndpointsController(view: ClusterView): Controller {
  return {
    name: 'endpoints',
    start(context) {
      const keeper = new EndpointsKeeper(view, context)
      return async (key, signal) => {
        await keeper.reconcile(key, signal)
        return undefined
      }
    },
  }
}
