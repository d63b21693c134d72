import { BlockList, isIPv6 } from 'node:net'
import { readFeatureGates } from '../../flags.ts'
import type { TunnelAgentOptions } from './options.ts'
import { parseTarget } from './values.ts'

function listOf(ranges: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList()
  for (const [address, bits] of ranges) {
    list.addSubnet(address, bits, isIPv6(address) ? 'ipv6' : 'ipv4')
  }
  return list
}

const kinds = [
  [
    'a loopback address',
    listOf([
      ['127.0.0.0', 8],
      ['::1', 128],
    ]),
  ],
  [
    'a link-local address',
    listOf([
      ['169.254.0.0', 16],
      ['fe80::', 10],
    ]),
  ],
  [
    'no single address',
    listOf([
      ['0.0.0.0', 32],
      ['::', 128],
    ]),
  ],
] as const

/** Why Pods could not use this address as that of the API server, or nothing. */
export function bindAddressWarning(address: string): string | undefined {
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  const kind = kinds.find(([, list]) => list.check(address, family))?.[0]
  if (kind === undefined) return undefined
  return `--bind-address ${address} is ${kind}: Endpoints of the API server cannot have it, use a private one such as 10.64.0.1`
}

/** Everything that is wrong with options that are fine each by itself. */
export function problemsOfTunnelAgentOptions(
  options: TunnelAgentOptions,
  fileExists: (path: string) => boolean,
): string[] {
  return [
    ...problemsOfFiles(options, fileExists),
    ...problemsOfNodeTraffic(options),
    ...(options.syncInterval > options.syncIntervalCap
      ? ['--sync-interval must not be longer than --sync-interval-cap']
      : []),
    ...(options.enableContentionProfiling && !options.enableProfiling
      ? ['--enable-contention-profiling needs --enable-profiling']
      : []),
  ]
}

function problemsOfFiles(
  options: TunnelAgentOptions,
  fileExists: (path: string) => boolean,
): string[] {
  const named = [
    ['agent-cert', options.agentCert],
    ['agent-key', options.agentKey],
    ['ca-cert', options.caCert],
    ['service-account-token-path', options.serviceAccountTokenPath],
    ['kubeconfig', options.kubeconfig],
  ] as const
  const isPair = (options.agentCert === '') === (options.agentKey === '')
  return [
    ...(options.caCert === ''
      ? ['--ca-cert is required: it tells the true server from a false one']
      : []),
    ...(isPair ? [] : ['--agent-cert and --agent-key only go together']),
    ...named
      .filter(([, path]) => path !== '' && !fileExists(path))
      .map(([name, path]) => `--${name}: there is no file ${path}`),
  ]
}

function problemsOfNodeTraffic(options: TunnelAgentOptions): string[] {
  const { target, bindAddress, featureGates } = options
  if (target.length === 0 || bindAddress === undefined) return []
  const problems: string[] = []
  if (!readFeatureGates(featureGates).nodeToMasterTraffic) {
    problems.push(
      '--target and --bind-address need --feature-gates NodeToMasterTraffic=true, which is off by default',
    )
  }
  const unusable = bindAddressWarning(bindAddress)
  if (unusable !== undefined && options.refuseUnusableBindAddress) problems.push(unusable)
  return [...problems, ...problemsOfLocalPorts(target)]
}

function problemsOfLocalPorts(targets: readonly string[]): string[] {
  const seen = new Set<number>()
  const twice = new Set<number>()
  for (const text of targets) {
    const parsed = parseTarget(text)
    if ('problem' in parsed || parsed.target.localPort === 0) continue
    const { localPort } = parsed.target
    if (seen.has(localPort)) twice.add(localPort)
    seen.add(localPort)
  }
  return [...twice].map((localPort) => `--target: local port ${localPort} is used twice`)
}
