import { delimiter, dirname, join, resolve, sep } from 'node:path'
import { CommandFailed, readFileIfPresent, systemErrorCode } from '../core/index.ts'
import { present } from './field-reader.ts'
import { type InClusterPlace, inClusterContext } from './in-cluster.ts'
import {
  type Cluster,
  type Extensions,
  type Kubeconfig,
  KubeconfigInvalid,
  type KubeconfigUser,
} from './kubeconfig.ts'
import { parseKubeconfig } from './parse.ts'
import { type ResolvedContext, resolveContext } from './resolve-context.ts'

/**
 * Merges kubeconfigs as kubectl does: the first one that has an entry of a name wins it as a whole,
 * and the first current context that is set counts.
 */
export function mergeKubeconfigs(configs: readonly Kubeconfig[]): Kubeconfig {
  const extensions = firstWins(configs.map((config) => config.extensions ?? new Map()))
  const unknown = Object.assign({}, ...configs.map((config) => config.unknown).reverse()) as Record<
    string,
    unknown
  >
  return {
    currentContext: configs.find((config) => config.currentContext !== '')?.currentContext ?? '',
    clusters: firstWins(configs.map((config) => config.clusters)),
    users: firstWins(configs.map((config) => config.users)),
    contexts: firstWins(configs.map((config) => config.contexts)),
    ...(extensions.size > 0 && { extensions: extensions satisfies Extensions }),
    ...(Object.keys(unknown).length > 0 && { unknown }),
  }
}

function firstWins<T>(maps: readonly ReadonlyMap<string, T>[]): ReadonlyMap<string, T> {
  const merged = new Map<string, T>()
  for (const map of maps) {
    for (const [name, entry] of map) if (!merged.has(name)) merged.set(name, entry)
  }
  return merged
}

/** A kubeconfig whose files are named from the root: relative ones are beside the kubeconfig itself. */
export function withAbsolutePaths(config: Kubeconfig, directory: string): Kubeconfig {
  const absolute = (path: string | undefined): string | undefined =>
    path === undefined ? path : resolve(directory, path)
  const cluster = (entry: Cluster): Cluster => ({
    ...entry,
    ...present({ certificateAuthority: absolute(entry.certificateAuthority) }),
  })
  const user = (entry: KubeconfigUser): KubeconfigUser => ({
    ...entry,
    ...present({
      clientCertificate: absolute(entry.clientCertificate),
      clientKey: absolute(entry.clientKey),
      tokenFile: absolute(entry.tokenFile),
      // A bare name is looked up in PATH instead.
      exec: entry.exec?.command.includes(sep)
        ? { ...entry.exec, command: absolute(entry.exec.command) ?? '' }
        : entry.exec,
    }),
  })
  return {
    ...config,
    clusters: mapValues(config.clusters, cluster),
    users: mapValues(config.users, user),
  }
}

function mapValues<T>(map: ReadonlyMap<string, T>, change: (value: T) => T): Map<string, T> {
  return new Map([...map].map(([name, value]) => [name, change(value)]))
}

/** Where a kubeconfig is looked for, as kubectl does it. */
export interface KubeconfigSources {
  /** The value of `--kubeconfig`: this file alone, and it must exist. */
  readonly explicitPath?: string | undefined
  /** The value of KUBECONFIG: a list of files, of which some may be missing. */
  readonly kubeconfig?: string | undefined
  /** The home directory; `.kube/config` in it is the last resort. */
  readonly home: string
}

/** A kubeconfig and the files that it came from. */
export interface LoadedKubeconfig {
  readonly config: Kubeconfig
  /** In the order of precedence. */
  readonly files: readonly string[]
  /** Files that were named but do not exist. */
  readonly missing: readonly string[]
  /** The file that each user's entry came from. */
  readonly userFiles: ReadonlyMap<string, string>
  /** The file that each cluster's entry came from. */
  readonly clusterFiles: ReadonlyMap<string, string>
  /** For the user's eyes: what was not an error but may be a mistake. */
  readonly warnings: readonly string[]
}

/** Loads and merges kubeconfig files; nothing at all is an empty one. */
export async function loadKubeconfig(sources: KubeconfigSources): Promise<LoadedKubeconfig> {
  const paths = pathsOf(sources)
  const texts = await Promise.all(paths.map(async (path) => ({ path, text: await read(path) })))
  const present = texts.filter((file) => file.text !== undefined)
  const missing = texts.filter((file) => file.text === undefined).map(({ path }) => path)
  if (sources.explicitPath && missing.length > 0) throw absent(sources.explicitPath)
  const configs = await parseAll(present)
  return {
    config: mergeKubeconfigs(configs),
    files: present.map(({ path }) => path),
    missing,
    userFiles: filesOf('users', present, configs),
    clusterFiles: filesOf('clusters', present, configs),
    warnings: sources.kubeconfig && present.length === 0 ? [noneThere(missing)] : [],
  }
}

/** Where a context is looked for. */
export interface ContextSources extends KubeconfigSources {
  /** A pod without any kubeconfig is a user of its own cluster; not asked if absent. */
  readonly inCluster?: InClusterPlace
}

/** Loads the kubeconfig and finds one of its contexts, the current one if none is named. */
export async function loadContext(
  sources: ContextSources,
  name?: string,
): Promise<ResolvedContext & Pick<LoadedKubeconfig, 'warnings'>> {
  const { config, files, userFiles, clusterFiles, warnings } = await loadKubeconfig(sources)
  const place = sources.inCluster
  if (files.length === 0 && name === undefined && place?.env['KUBERNETES_SERVICE_HOST']) {
    return { ...(await inClusterContext(place)), warnings }
  }
  const context = resolveContext(config, name)
  const userFile = userFiles.get(context.userName)
  const clusterFile = clusterFiles.get(context.clusterName)
  return {
    ...context,
    ...(userFile !== undefined && { userFile }),
    ...(clusterFile !== undefined && { clusterFile }),
    warnings,
  }
}

function filesOf(
  list: 'users' | 'clusters',
  files: readonly KubeconfigFile[],
  configs: readonly Kubeconfig[],
): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const [index, { path }] of files.entries()) {
    for (const name of configs[index]?.[list].keys() ?? []) {
      if (!found.has(name)) found.set(name, path)
    }
  }
  return found
}

const noneThere = (missing: readonly string[]): string =>
  `no file that KUBECONFIG names exists: ${missing.join(', ')}`

interface KubeconfigFile {
  readonly path: string
  readonly text?: string | undefined
}

async function parseAll(files: readonly KubeconfigFile[]): Promise<Kubeconfig[]> {
  const configs: Kubeconfig[] = []
  const invalid: KubeconfigInvalid[] = []
  for (const { path, text = '' } of files) {
    try {
      configs.push(withAbsolutePaths(await parseKubeconfig(text, path), dirname(path)))
    } catch (error) {
      if (!(error instanceof KubeconfigInvalid)) throw error
      invalid.push(error)
    }
  }
  const [first, ...others] = invalid
  if (!first) return configs
  if (others.length === 0) throw first
  const problems = invalid.flatMap(({ where, problems: each }) =>
    each.map((problem) => `${where}: ${problem}`),
  )
  throw new KubeconfigInvalid('the kubeconfig', problems)
}

function pathsOf({ explicitPath, kubeconfig, home }: KubeconfigSources): string[] {
  if (explicitPath) return [explicitPath]
  const listed = (kubeconfig ?? '').split(delimiter).filter((path) => path !== '')
  return listed.length > 0 ? [...new Set(listed)] : [join(home, '.kube', 'config')]
}

async function read(path: string): Promise<string | undefined> {
  try {
    return await readFileIfPresent(path)
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed(
      'KUBECONFIG_UNREADABLE',
      `cannot read the kubeconfig ${path}: ${code}`,
      {
        hint: 'name a file that this user may read',
        cause,
      },
    )
  }
}

const absent = (path: string): CommandFailed =>
  new CommandFailed('KUBECONFIG_MISSING', `there is no kubeconfig ${path}`, {
    hint: 'check the path, or leave it out: the help of the command says where it looks then',
  })
