import type { Transport, TransportRequest } from '../../client/index.ts'
import { type Clock, type Logger, systemClock } from '../../core/index.ts'
import type { ContextHost } from '../../credentials/index.ts'
import {
  Connections,
  type ConnectionsOptions,
  createTransport,
  ReplaceableTrust,
  requestUpgrade,
  type UpgradeOutcome,
  type UpgradeRequest,
} from '../../credentials/transport/index.ts'
import {
  type Cluster,
  type ClusterLocation,
  clusterLocation,
  loadKubeconfig,
  type ResolvedContext,
} from '../../kubeconfig/index.ts'
import { addressFailures, lostBy } from './errors.ts'
import { entryOf, type Refreshed, refreshKubeconfig, refreshLocation } from './refresh-location.ts'

/** How a cluster is followed. */
export interface FollowedClusterOptions {
  /** Runs plugins under this process unless given. */
  readonly host?: ContextHost
  /** How its connections differ from the usual ones. */
  readonly connections?: Pick<ConnectionsOptions, 'http' | 'maxConnections'>
  /** What is dialled for an address of the cluster; the address itself unless given. */
  readonly dialled?: (address: string) => string
  /** How often the cluster is asked where it is; 10 minutes unless given. */
  readonly everyMs?: number
  /** Told when it could not be asked; the next time is soon enough. */
  readonly log?: Logger
  readonly clock?: Clock
  /** Called after the location has changed. */
  readonly onChange?: (location: ClusterLocation) => void
}

interface FollowedParts {
  readonly connections: Connections
  readonly trust: ReplaceableTrust | undefined
  readonly withSystemRoots: (pem: string) => string
}

const tenMinutesMs = 10 * 60_000

/**
 * A cluster that is followed: its transport goes where the cluster says it is and believes the roots that it
 * names, and the kubeconfig that the context came from is kept current.
 */
export class FollowedCluster {
  readonly transport: Transport
  readonly #options: FollowedClusterOptions
  readonly #connections: Connections
  readonly #trust: ReplaceableTrust | undefined
  readonly #withSystemRoots: FollowedParts['withSystemRoots']
  readonly #closed = new AbortController()
  #context: ResolvedContext
  #refreshing: Promise<Refreshed> | undefined
  #timer: NodeJS.Timeout | undefined

  private constructor(
    context: ResolvedContext,
    options: FollowedClusterOptions,
    parts: FollowedParts,
  ) {
    this.#context = context
    this.#options = options
    this.#connections = parts.connections
    this.#trust = parts.trust
    this.#withSystemRoots = parts.withSystemRoots
    const inner = createTransport(parts.connections)
    this.transport = {
      server: inner.server,
      send: (request) =>
        this.#wherever(() => inner.send(request), request.signal, isReplayable(request)),
      destroy: () => this.close(),
    }
  }

  /** Follows the cluster of a context; nothing is asked before the first request or period. */
  static async open(
    context: ResolvedContext,
    options: FollowedClusterOptions = {},
  ): Promise<FollowedCluster> {
    // Loaded here, so that whoever only discovers does not pay for plugins and files.
    const { contextConnectionOptions } = await import('../../credentials/provider/index.ts')
    const { withSystemRoots } = await import('../../credentials/sources/index.ts')
    const host = options.host ?? (await thisProcess())
    const made = await contextConnectionOptions(context, host)
    const pem = await made.tls?.trust?.current()
    const trust = pem === undefined ? undefined : new ReplaceableTrust(pem)
    const addresses = typeof made.servers === 'string' ? [made.servers] : made.servers
    const connections = new Connections({
      ...made,
      ...options.connections,
      servers: options.dialled ? addresses.map(options.dialled) : addresses,
      ...(trust && { tls: { ...made.tls, trust } }),
    })
    const parts = { connections, trust, withSystemRoots }
    const followed = new FollowedCluster(context, { ...options, host }, parts)
    followed.#askLater()
    return followed
  }

  /** Where the cluster is, as far as is known. */
  get location(): ClusterLocation {
    return clusterLocation(this.#context.cluster)
  }

  /** Asks the cluster to speak another protocol. */
  upgrade(request: UpgradeRequest): Promise<UpgradeOutcome> {
    return this.#wherever(() => requestUpgrade(this.#connections, request), request.signal)
  }

  /** Asks the cluster where it is and takes that over; throws LocationLost. */
  refresh(): Promise<Refreshed> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  /** Ends following and cuts every connection. */
  close(): void {
    this.#closed.abort()
    clearTimeout(this.#timer)
    this.#connections.destroy()
    this.#connections.options.credentials?.dispose()
    this.#trust?.dispose()
  }

  async #refresh(): Promise<Refreshed> {
    const { host, log, clock = systemClock } = this.#options
    const { cluster, user } = this.#context
    const { signal } = this.#closed
    const order = { cluster, user, signal, ...(host && { host }), ...(log && { log }) }
    const entry = entryOf(this.#context, clock)
    const refreshed = entry
      ? await refreshKubeconfig({ ...order, entry })
      : await refreshLocation(order)
    if (refreshed.changed) this.#adopt(refreshed.cluster)
    return refreshed
  }

  #adopt(cluster: Cluster): void {
    this.#context = { ...this.#context, cluster }
    const { addresses, rootsPem, systemRoots } = this.location
    const { dialled } = this.#options
    this.#connections.useServers(dialled ? addresses.map(dialled) : addresses)
    if (rootsPem !== undefined)
      this.#trust?.replace(systemRoots ? this.#withSystemRoots(rootsPem) : rootsPem)
    this.#options.onChange?.(this.location)
  }

  /** Asks once more where the cluster is at no address that was known, and another process has written down where it is now. */
  async #wherever<T>(ask: () => Promise<T>, signal: AbortSignal, isReplayable = true): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      const lost = lostBy(addressFailures(error, this.#connections.server))
      if (!lost || signal.aborted) throw error
      if (!(await this.#adoptFile()) || !isReplayable) throw lost
      return ask()
    }
  }

  /** True if the kubeconfig says something else of the cluster than what is known here. */
  async #adoptFile(): Promise<boolean> {
    const { clusterFile, clusterName, cluster } = this.#context
    if (clusterFile === undefined) return false
    const found = await loadKubeconfig({ explicitPath: clusterFile, home: '' })
      .then(({ config }) => config.clusters.get(clusterName))
      .catch(() => undefined)
    if (
      !found ||
      JSON.stringify(clusterLocation(found)) === JSON.stringify(clusterLocation(cluster))
    )
      return false
    this.#adopt(found)
    return true
  }

  /** Up to a tenth is left to chance, so that clients which start together do not ask together. */
  #askLater(): void {
    const { everyMs = tenMinutesMs, log } = this.#options
    const ask = async (): Promise<void> => {
      await this.refresh().catch((err: unknown) => {
        if (!this.#closed.signal.aborted) log?.warn({ err }, 'cannot ask the cluster where it is')
      })
      if (!this.#closed.signal.aborted) this.#askLater()
    }
    this.#timer = setTimeout(() => void ask(), everyMs * (1 - Math.random() / 10)).unref()
  }
}

/** A stream that has begun cannot be sent again. */
const isReplayable = ({ stream }: TransportRequest): boolean =>
  stream === undefined || typeof stream === 'function'

async function thisProcess(): Promise<ContextHost> {
  const { nodePluginHost } = await import('../../credentials/exec/index.ts')
  const plugins = nodePluginHost()
  return { plugins, proxyEnv: plugins.env }
}
