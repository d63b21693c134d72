import { randomUUID } from 'node:crypto'
import { readFeatureGates } from '../flags.ts'
import type { LinkLimits } from '../link/index.ts'
import type { TcpPlace, UnixPlace } from '../ports/listen.ts'
import {
  minTlsVersion,
  opensslCiphers,
  parseLabels,
  parseSniRoute,
  type SniRoute,
  type TunnelServerOptions,
} from './options/index.ts'
import type { StrategyName } from './strategies.ts'

/** The files of a TLS port. */
export interface TlsFileNames {
  readonly certFile: string
  readonly keyFile: string
  /** With it clients must show a certificate under it. */
  readonly clientCaFile?: string
}

/** How agents without client certificates prove who they are. */
export interface AgentTokens {
  readonly namespace: string
  readonly serviceAccount: string
  readonly audience: string
  /** How often the token of a connected agent is reviewed again; 0 never does. */
  readonly reviewEveryMs: number
  /** Whether an agent is cut when its token ends. */
  readonly cutsExpired: boolean
}

/** Where and how agents connect. */
export interface AgentPortConfig extends TcpPlace {
  readonly tls: TlsFileNames
  /** Client certificates must name this organization, as `system:nodes`; any under the CA will do without it. */
  readonly organization?: string
  readonly tokens?: AgentTokens
  /** Silence after which an agent is asked whether it is there; 0 never asks. */
  readonly keepaliveMs: number
  /** How long it may take to answer; 20 s as upstream. */
  readonly keepaliveAnswerMs?: number
}

/** Where and how kube-apiserver connects. */
export interface FrontEndConfig {
  readonly mode: 'grpc' | 'http-connect'
  readonly place: UnixPlace | (TcpPlace & { readonly tls: Required<TlsFileNames> })
  readonly keepaliveMs: number
}

/** What a tunnel server opens and how it behaves; what is absent is not opened. */
export interface TunnelServerConfig {
  readonly serverId: string
  readonly serverCount: number
  readonly strategies: readonly StrategyName[]
  /** `node`: addresses belong to agents by the cluster's Nodes, Pods and Services; `none`: by what agents announce. */
  readonly agentIdentityCheck: 'node' | 'none'
  readonly dialTimeoutMs: number
  readonly agents?: AgentPortConfig
  readonly frontEnd?: FrontEndConfig
  readonly health?: TcpPlace
  readonly admin?: TcpPlace & { readonly isProfiling: boolean }
  readonly leases?: {
    readonly namespace: string
    readonly labels: Readonly<Record<string, string>>
  }
  readonly nodeTraffic: {
    readonly isOn: boolean
    readonly allowedDestinations: readonly string[]
    readonly sniRoutes: readonly SniRoute[]
    /** Connections from nodes at a time, shared fairly between agents; 10000 without it. */
    readonly maxConnections?: number
  }
  readonly tlsMinVersion: 'TLSv1.2' | 'TLSv1.3'
  /** OpenSSL's list. */
  readonly ciphers?: string
  /** How much may wait in memory; the link's own defaults without it. */
  readonly limits?: Partial<LinkLimits>
  /** At the end, how long open connections may go on. */
  readonly drainMs: number
}

/** The configuration that checked options stand for. */
export function configOfOptions(options: TunnelServerOptions): TunnelServerConfig {
  const ciphers = opensslCiphers(options.cipherSuites)
  const labels = options.enableLeaseController ? parseLabels(options.leaseLabel) : undefined
  const timeouts = [options.pendingDialTimeout, options.backendDialTimeout].filter((ms) => ms > 0)
  return {
    serverId: options.serverId || randomUUID(),
    serverCount: options.serverCount,
    strategies: options.proxyStrategies,
    agentIdentityCheck: options.agentIdentityCheck || (options.kubeconfig === '' ? 'none' : 'node'),
    dialTimeoutMs: Math.min(...timeouts),
    agents: agentPortOf(options),
    frontEnd: frontEndOf(options),
    health: { host: options.healthBindAddress, port: options.healthPort },
    admin: {
      host: options.adminBindAddress,
      port: options.adminPort,
      isProfiling: options.enableProfiling,
    },
    ...(labels && { leases: { namespace: options.leaseNamespace, labels } }),
    nodeTraffic: {
      isOn: readFeatureGates(options.featureGates).nodeToMasterTraffic,
      allowedDestinations: options.allowedDestination,
      sniRoutes: options.sniRoute.flatMap((route) => parseSniRoute(route) ?? []),
    },
    tlsMinVersion: minTlsVersion(options.tlsMinVersion),
    ...(ciphers !== undefined && { ciphers }),
    limits: {
      channelUnreadBytes: options.maxConnectionBuffer,
      peerBufferBytes: options.maxAgentBuffer,
    },
    drainMs: options.gracefulShutdownTimeout,
  }
}

function agentPortOf(options: TunnelServerOptions): AgentPortConfig {
  return {
    host: options.agentBindAddress,
    port: options.agentPort,
    tls: {
      certFile: options.clusterCert,
      keyFile: options.clusterKey,
      ...(options.clusterCaCert !== '' && { clientCaFile: options.clusterCaCert }),
    },
    ...(options.agentNamespace !== '' && {
      tokens: {
        namespace: options.agentNamespace,
        serviceAccount: options.agentServiceAccount,
        audience: options.authenticationAudience,
        reviewEveryMs: options.agentTokenReviewPeriod,
        cutsExpired: options.cutExpiredAgents,
      },
    }),
    keepaliveMs: options.keepaliveTime,
  }
}

function frontEndOf(options: TunnelServerOptions): FrontEndConfig {
  const { mode, udsName, deleteExistingUdsFile: replace, serverBindAddress, serverPort } = options
  const place =
    udsName === ''
      ? {
          host: serverBindAddress,
          port: serverPort,
          tls: {
            certFile: options.serverCert,
            keyFile: options.serverKey,
            clientCaFile: options.serverCaCert,
          },
        }
      : { path: udsName, replace }
  return { mode, place, keepaliveMs: options.frontendKeepaliveTime }
}
