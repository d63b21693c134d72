import { readFile } from 'node:fs/promises'
import type { CoreV1Api } from '@kubernetes/client-node'
import { createKubeClient } from '../../src/client/index.ts'
import { connectKubeConfig } from '../../src/credentials/adapters/index.ts'
import { connectContext, nodePluginHost } from '../../src/credentials/index.ts'
import { Connections, createFetch, createTransport } from '../../src/credentials/transport/index.ts'
import { parseKubeconfig, resolveContext } from '../../src/kubeconfig/index.ts'

/** Reads one ConfigMap of the cluster that a kubeconfig names. */
export type Get = () => Promise<void>

const configMaps = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  namespaced: true,
}
const { signal } = new AbortController()

async function connections(path: string, http: 'auto' | '2'): Promise<Connections> {
  const text = await readFile(path, 'utf8')
  const context = resolveContext(await parseKubeconfig(text, path))
  const made = await connectContext(context, { plugins: nodePluginHost() })
  return new Connections({ ...made.options, http })
}

async function ours(path: string, http: 'auto' | '2'): Promise<Get> {
  const client = createKubeClient({ transport: createTransport(await connections(path, http)) })
  return async () => {
    const found = await client.get(configMaps, { namespace: 'default', name: 'a' }, signal)
    if (found?.metadata.name !== 'a') throw new Error('a wrong answer')
  }
}

async function oursByFetch(path: string): Promise<Get> {
  const fetch = createFetch(await connections(path, 'auto'))
  return async () => {
    const response = await fetch('/api/v1/namespaces/default/configmaps/a')
    const { metadata } = (await response.json()) as { metadata: { name: string } }
    if (metadata.name !== 'a') throw new Error('a wrong answer')
  }
}

async function official(path: string): Promise<Get> {
  const { CoreV1Api, KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  config.loadFromString(await readFile(path, 'utf8'))
  return reader(config.makeApiClient(CoreV1Api))
}

const reader = (api: CoreV1Api) => async (): Promise<void> => {
  const found = await api.readNamespacedConfigMap({ namespace: 'default', name: 'a' })
  if (found.metadata?.name !== 'a') throw new Error('a wrong answer')
}

async function officialOnOurs(path: string): Promise<Get> {
  const clientNode = await import('@kubernetes/client-node')
  const config = new clientNode.KubeConfig()
  config.loadFromString(await readFile(path, 'utf8'))
  connectKubeConfig(clientNode, config, await connections(path, 'auto'))
  return reader(config.makeApiClient(clientNode.CoreV1Api))
}

/** All who are measured, by name. */
export const contestants: Readonly<Record<string, (path: string) => Promise<Get>>> = {
  client: (path) => ours(path, 'auto'),
  'client, HTTP/2': (path) => ours(path, '2'),
  createFetch: oursByFetch,
  '@kubernetes/client-node': official,
  'the same on our connections': officialOnOurs,
}
