import {
  ApiError,
  apiVersionOf,
  badRequest,
  hasReason,
  isRecord,
  type Key,
  type Kind,
  type KubeObject,
} from '../core/index.ts'
import { type ExchangeContext, exchangeJson } from './request.ts'

const notASegment = /^\.{0,2}$|[/%]/

/** A name as part of a path; refuses what would make it another path. */
function segment(what: string, text: string): string {
  if (notASegment.test(text))
    throw badRequest(`${what} ${JSON.stringify(text)} cannot be part of a path`)
  return encodeURIComponent(text)
}

/** Where the API serves a group and version. */
const groupVersionPath = ({ group, version }: Pick<Kind, 'group' | 'version'>): string =>
  group
    ? `/apis/${segment('API group', group)}/${segment('version', version)}`
    : `/api/${segment('version', version)}`

/** Where all objects of a kind are, or those of one namespace. */
export function collectionPath(kind: Kind, namespace: string | undefined): string {
  const root = groupVersionPath(kind)
  const resource = segment('resource', kind.resource)
  return kind.namespaced && namespace
    ? `${root}/namespaces/${segment('namespace', namespace)}/${resource}`
    : `${root}/${resource}`
}

/** Where one object is, or a subresource of it. */
export function objectPath(kind: Kind, key: Key, subresource?: string): string {
  requireNamespace(kind, key.namespace)
  const path = `${collectionPath(kind, key.namespace)}/${segment('name', key.name)}`
  return subresource ? `${path}/${segment('subresource', subresource)}` : path
}

/** Where an object of a kind is created. */
export function creationPath(kind: Kind, namespace: string | undefined): string {
  requireNamespace(kind, namespace)
  return collectionPath(kind, namespace)
}

function requireNamespace(kind: Kind, namespace: string | undefined): void {
  if (kind.namespaced && !namespace) throw badRequest(`a namespace is needed for ${kind.resource}`)
}

/** Knows where the API serves a kind: from API discovery, asked once for each group and version. */
export class KindLookup {
  readonly #context: ExchangeContext
  readonly #kinds = new Map<string, Kind>()

  /** `kinds` are known beforehand and need no discovery. */
  constructor(context: ExchangeContext, kinds: readonly Kind[]) {
    this.#context = context
    this.#remember(kinds)
  }

  /** The kind of an object; asks again for one not heard of, since kinds may be added at any time. */
  async kindOf(
    object: Pick<KubeObject, 'apiVersion' | 'kind'>,
    signal: AbortSignal,
  ): Promise<Kind> {
    const known = this.#kinds.get(lookupKey(object.apiVersion, object.kind))
    if (known) return known
    this.#remember(await this.#discover(object.apiVersion, signal))
    const found = this.#kinds.get(lookupKey(object.apiVersion, object.kind))
    if (found) return found
    throw new ApiError(
      'NotFound',
      `no matches for kind "${object.kind}" in version "${object.apiVersion}"`,
    )
  }

  #remember(kinds: readonly Kind[]): void {
    for (const kind of kinds) this.#kinds.set(lookupKey(apiVersionOf(kind), kind.kind), kind)
  }

  async #discover(apiVersion: string, signal: AbortSignal): Promise<Kind[]> {
    const groupVersion = parseApiVersion(apiVersion)
    const request = { method: 'GET', path: groupVersionPath(groupVersion) }
    try {
      const { resources } = await exchangeJson(this.#context, request, signal)
      return kindsIn(resources, groupVersion)
    } catch (error) {
      if (hasReason(error, 'NotFound')) return []
      throw error
    }
  }
}

const lookupKey = (apiVersion: string, kind: string): string => `${apiVersion} ${kind}`

function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf('/')
  return {
    group: slash < 0 ? '' : apiVersion.slice(0, slash),
    version: apiVersion.slice(slash + 1),
  }
}

/** The kinds of an APIResourceList; entries with a slash are subresources. */
function kindsIn(resources: unknown, groupVersion: { group: string; version: string }): Kind[] {
  if (!Array.isArray(resources)) return []
  return resources.filter(isRecord).flatMap(({ name, kind, namespaced }) => {
    if (typeof name !== 'string' || typeof kind !== 'string' || name.includes('/')) return []
    return [{ ...groupVersion, kind, resource: name, namespaced: namespaced === true }]
  })
}
