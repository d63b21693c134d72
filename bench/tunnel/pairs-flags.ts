import type { TunnelCertificates } from './pairs-certificates.ts'

/** The protocol of a tunnel server's front end, by upstream's names. */
export type FrontMode = 'grpc' | 'http-connect'

/** Where a tunnel server listens: its front end on a UNIX socket or a port. */
export interface ServerPlace {
  readonly mode: FrontMode
  readonly front: { readonly uds: string } | { readonly port: number }
  readonly agentPort: number
  readonly healthPort: number
  readonly adminPort: number
}

/** Where an agent finds its server and listens itself. */
export interface AgentPlace {
  readonly host: string
  readonly port: number
  readonly healthPort: number
  readonly adminPort: number
}

const flag = ([name, value]: readonly [string, string | number]): string => `--${name}=${value}`

/** A tunnel server's flags, the same for upstream's program and ours. */
export function serverFlags(files: TunnelCertificates, place: ServerPlace): string[] {
  const { front } = place
  const frontFlags: readonly (readonly [string, string | number])[] =
    'uds' in front
      ? [
          ['uds-name', front.uds],
          ['server-port', 0],
        ]
      : [
          ['server-port', front.port],
          ['server-bind-address', '127.0.0.1'],
          ['server-cert', files.front.cert],
          ['server-key', files.front.key],
          ['server-ca-cert', files.frontCa],
        ]
  return [
    ...frontFlags,
    ['mode', place.mode] as const,
    ['agent-port', place.agentPort] as const,
    ['health-port', place.healthPort] as const,
    ['admin-port', place.adminPort] as const,
    ['cluster-cert', files.cluster.cert] as const,
    ['cluster-key', files.cluster.key] as const,
    ['cluster-ca-cert', files.clusterCa] as const,
  ].map(flag)
}

/** An agent's flags, the same for upstream's program and ours. */
export function agentFlags(files: TunnelCertificates, place: AgentPlace): string[] {
  const pairs: readonly (readonly [string, string | number])[] = [
    ['proxy-server-host', place.host],
    ['proxy-server-port', place.port],
    ['health-server-port', place.healthPort],
    ['admin-server-port', place.adminPort],
    ['ca-cert', files.clusterCa],
    ['agent-cert', files.agent.cert],
    ['agent-key', files.agent.key],
  ]
  return pairs.map(flag)
}
