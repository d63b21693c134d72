import type { Clock } from '../../core/index.ts'
import { type LiveResource, liveResourceHandler } from './live-resource.ts'
import type { ResourceHandler } from './resource-api.ts'

const definitions: LiveResource = {
  kind: {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    kind: 'CustomResourceDefinition',
    resource: 'customresourcedefinitions',
    namespaced: false,
  },
  columns: [],
  revision: 1,
  list: () => [],
  get: () => undefined,
  end: () => false,
  follow: () => () => {},
}

const { group, version, resource } = definitions.kind

/**
 * Answers that nobody has defined kinds of their own, which is all there is to say here. kubectl asks for the list before it
 * creates anything that cannot be patched, such as a review, and takes a 404 for a failure. API discovery does not show it.
 */
export const noCustomKinds = (clock: Clock): [path: string, handler: ResourceHandler] => [
  `${group}/${version}/${resource}/`,
  liveResourceHandler(definitions, clock),
]
