import { realpath } from 'node:fs/promises'
import type * as yaml from 'yaml'
import type { Document, YAMLMap } from 'yaml'
import {
  acquireFileLock,
  type Clock,
  CommandFailed,
  readFileIfPresent,
  systemErrorCode,
} from '../core/index.ts'
import type { Cluster, Kubeconfig } from './kubeconfig.ts'
import { parseKubeconfig } from './parse.ts'
import { renderCluster, renderKubeconfig, writeKubeconfigText } from './write.ts'

/** A cluster entry of a file. */
export interface ClusterEntry {
  readonly path: string
  readonly name: string
}

/**
 * Changes one cluster entry of a kubeconfig file under its lock; `change` gets the entry as it is then, and
 * `undefined` leaves it alone. Other entries, comments and the order of things stay as they are.
 */
export async function changeCluster(
  entry: ClusterEntry,
  change: (cluster: Cluster) => Cluster | undefined,
  parts: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<boolean> {
  // The lock and the file are those behind a link: replacing the link would take the file from its owner's eyes.
  const path = await realpath(entry.path).catch(() => entry.path)
  return withKubeconfigLock(path, parts.clock, parts.signal, async () => {
    const text = (await readFileIfPresent(path)) ?? ''
    const config = await parseKubeconfig(text, path)
    const present = config.clusters.get(entry.name)
    if (!present) throw noSuchCluster(path, entry.name)
    const next = change(present)
    if (!next) return false
    const wanted = { ...config, clusters: new Map(config.clusters).set(entry.name, next) }
    await writeKubeconfigText(path, await editedText(text, entry.name, wanted))
    return true
  })
}

const noSuchCluster = (path: string, name: string): CommandFailed =>
  new CommandFailed('NO_SUCH_CLUSTER', `${path} has no cluster ${JSON.stringify(name)} any more`, {
    hint: 'somebody has changed the file meanwhile; look at it and try again',
  })

/** The text with one entry changed in its place; written anew as a whole where that would not say what is wanted. */
async function editedText(text: string, name: string, wanted: Kubeconfig): Promise<string> {
  const whole = await renderKubeconfig(wanted)
  const library = await import('yaml')
  const document = library.parseDocument(text, { version: '1.1' })
  const cluster = clusterNode(library, document, name)
  const entry = wanted.clusters.get(name)
  if (!cluster || !entry) return whole
  setFields(document, cluster, renderCluster(entry))
  const edited = document.toString({ lineWidth: 0 })
  const read = await parseKubeconfig(edited, name).catch(() => undefined)
  return read && (await renderKubeconfig(read)) === whole ? edited : whole
}

function clusterNode(
  library: typeof yaml,
  document: Document,
  name: string,
): YAMLMap<unknown, unknown> | undefined {
  const clusters = document.get('clusters')
  if (!library.isSeq(clusters)) return undefined
  for (const item of clusters.items) {
    if (!library.isMap(item) || (item.get('name') ?? '') !== name) continue
    const cluster = item.get('cluster')
    return library.isMap(cluster) ? cluster : undefined
  }
  return undefined
}

/** Only fields that differ are touched, so that comments beside the others stay. */
function setFields(document: Document, node: YAMLMap<unknown, unknown>, wanted: object): void {
  const present: Readonly<Record<string, unknown>> = node.toJS(document)
  for (const name of Object.keys(present)) if (!(name in wanted)) node.delete(name)
  for (const [name, value] of Object.entries(wanted)) {
    if (JSON.stringify(present[name]) !== JSON.stringify(value))
      node.set(name, document.createNode(value))
  }
}

const lockWaitMs = 10_000

/** Holds `<path>.lock`, as kubectl does before it writes a kubeconfig. */
export async function withKubeconfigLock<T>(
  path: string,
  clock: Clock,
  signal: AbortSignal,
  act: () => Promise<T>,
): Promise<T> {
  const lock = `${path}.lock`
  const release = await acquireFileLock(lock, { waitMs: lockWaitMs, clock, signal }).catch(
    (cause: unknown) => {
      signal.throwIfAborted()
      const code = systemErrorCode(cause) ?? 'unknown error'
      throw new CommandFailed('KUBECONFIG_UNLOCKABLE', `cannot create ${lock}: ${code}`, {
        hint: 'the directory of the kubeconfig must be writable',
        cause,
      })
    },
  )
  if (!release)
    throw new CommandFailed('KUBECONFIG_LOCKED', `${path} is locked by another process`, {
      hint: `if no other process uses it, remove ${lock}`,
    })
  try {
    return await act()
  } finally {
    await release()
  }
}
