import { randomUUID } from 'node:crypto'
import type { Kind, KubeObject } from '../core/index.ts'

/** A name that nobody else has. */
export const unique = (stem: string): string => `${stem}-${randomUUID().slice(0, 8)}`

/** A kind that no cluster serves. */
export const notServed: Kind = {
  group: 'nowhere.example.com',
  version: 'v1',
  kind: 'Unicorn',
  resource: 'unicorns',
  namespaced: true,
}

type Labels = Record<string, string>

/** The metadata of a draft. */
export const named = (namespace: string | undefined, name: string, labels?: Labels) => ({
  name,
  ...(namespace !== undefined && { namespace }),
  ...(labels && { labels }),
})

/** A ConfigMap to be made. */
export const configMap = (
  namespace: string,
  name: string,
  data: Labels = {},
  labels?: Labels,
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: named(namespace, name, labels),
  data,
})

/** A Secret to be made. */
export const secret = (namespace: string, name: string, type: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: named(namespace, name),
  type,
})

/** A Node to be made. */
export const node = (name: string, fields: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: named(undefined, name),
  ...fields,
})

/** A Namespace to be made. */
export const namespaceObject = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name },
})
