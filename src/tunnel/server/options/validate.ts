import { readFeatureGates } from '../../flags.ts'
import type { TunnelServerOptions } from './options.ts'

/** Whether a file is there; asked for each file that the options name. */
export type FileExists = (path: string) => boolean

const lowestPort = 1_024
const highestPort = 49_151

/** Everything that is wrong with options which are fine each by itself, in the order of upstream's checks. */
export function problemsOfTunnelServerOptions(
  options: TunnelServerOptions,
  fileExists: FileExists,
): string[] {
  return [
    ...problemsOfFiles(options, fileExists),
    ...problemsOfFrontEnd(options),
    ...problemsOfPorts(options),
    ...problemsOfTokens(options),
    ...problemsOfNodeTraffic(options),
    ...(options.enableContentionProfiling && !options.enableProfiling
      ? ['--enable-contention-profiling needs --enable-profiling']
      : []),
    ...(options.proxyStrategies.length === 0 ? ['--proxy-strategies must not be empty'] : []),
  ]
}

function problemsOfFiles(options: TunnelServerOptions, fileExists: FileExists): string[] {
  const pairs = [
    ['server-cert', options.serverCert, 'server-key', options.serverKey],
    ['cluster-cert', options.clusterCert, 'cluster-key', options.clusterKey],
  ] as const
  const files = [
    ...pairs.flatMap(([cert, certFile, key, keyFile]) => [
      [cert, certFile] as const,
      [key, keyFile] as const,
    ]),
    ['server-ca-cert', options.serverCaCert] as const,
    ['cluster-ca-cert', options.clusterCaCert] as const,
    ['kubeconfig', options.kubeconfig] as const,
  ]
  return [
    ...pairs.flatMap(([cert, certFile, key, keyFile]) =>
      (certFile === '') === (keyFile === '') ? [] : [`--${cert} and --${key} only go together`],
    ),
    ...files.flatMap(([name, path]) =>
      path === '' || fileExists(path) ? [] : [`--${name}: there is no file ${path}`],
    ),
    ...(options.clusterCert === '' && options.clusterKey === ''
      ? ['--cluster-cert and --cluster-key are required: agents connect with TLS only']
      : []),
  ]
}

function problemsOfFrontEnd(options: TunnelServerOptions): string[] {
  const { udsName, serverPort, serverCert, serverKey, serverCaCert } = options
  if (udsName === '') {
    return [
      ...(serverCaCert === ''
        ? ['--server-ca-cert is required unless --uds-name is set: clients must be known']
        : []),
      ...(serverCert === '' && serverKey === ''
        ? ['--server-cert and --server-key are required unless --uds-name is set']
        : []),
    ]
  }
  const given = [
    ['server-cert', serverCert],
    ['server-key', serverKey],
    ['server-ca-cert', serverCaCert],
  ] as const
  return [
    ...(serverPort === 0 ? [] : [`--server-port must be 0 with --uds-name, not ${serverPort}`]),
    ...given.flatMap(([name, value]) =>
      value === '' ? [] : [`--${name} must not be set with --uds-name`],
    ),
  ]
}

function problemsOfPorts(options: TunnelServerOptions): string[] {
  const ports = [
    ...(options.udsName === '' ? [['server-port', options.serverPort, false] as const] : []),
    ['agent-port', options.agentPort, true] as const,
    ['admin-port', options.adminPort, true] as const,
    ['health-port', options.healthPort, true] as const,
  ]
  return ports.flatMap(([name, port, mayBeFree]) => {
    if ((mayBeFree && port === 0) || (port >= lowestPort && port <= highestPort)) return []
    return [`--${name} must be from ${lowestPort} to ${highestPort}, not ${port}`]
  })
}

function problemsOfTokens(options: TunnelServerOptions): string[] {
  const flags = [
    ['agent-namespace', options.agentNamespace],
    ['agent-service-account', options.agentServiceAccount],
    ['authentication-audience', options.authenticationAudience],
  ] as const
  const missing = flags.filter(([, value]) => value === '').map(([name]) => `--${name}`)
  const wantsTokens = missing.length < flags.length
  const problems: string[] = []
  if (wantsTokens && missing.length > 0) {
    problems.push(`agents with tokens need ${missing.join(' and ')} as well`)
  }
  if (wantsTokens && options.clusterCaCert !== '') {
    problems.push('--cluster-ca-cert must not be set when agents show tokens')
  }
  if (!wantsTokens && options.clusterCaCert === '') {
    problems.push(
      'agents must prove who they are: set --cluster-ca-cert, or --agent-namespace, ' +
        '--agent-service-account and --authentication-audience',
    )
  }
  return problems
}

function problemsOfNodeTraffic(options: TunnelServerOptions): string[] {
  const { allowedDestination, sniRoute, featureGates } = options
  const isUsed = allowedDestination.length > 0 || sniRoute.length > 0
  return [
    ...(isUsed && !readFeatureGates(featureGates).nodeToMasterTraffic
      ? [
          '--allowed-destination and --sni-route need --feature-gates NodeToMasterTraffic=true, ' +
            'which is off by default',
        ]
      : []),
    ...(sniRoute.length > 0 && allowedDestination.length === 0
      ? [
          '--sni-route needs --allowed-destination: what agents dial is routed only if it is allowed',
        ]
      : []),
    ...problemsOfRoutes(options),
  ]
}

function problemsOfRoutes(options: TunnelServerOptions): string[] {
  const names = options.sniRoute.map((route) => route.split('=')[0]?.toLowerCase() ?? '')
  const twice = names.filter((name, index) => names.indexOf(name) !== index)
  return [...new Set(twice)].map((name) => `--sni-route names ${name} twice`)
}
