import { resolve, sep } from 'node:path'
import { present } from './field-reader.ts'
import type { Cluster, Kubeconfig, KubeconfigUser } from './kubeconfig.ts'

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
