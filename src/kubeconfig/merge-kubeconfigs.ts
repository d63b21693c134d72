import type { Extensions, Kubeconfig } from './kubeconfig.ts'

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
