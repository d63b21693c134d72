import { isIP } from 'node:net'
import { defineOptions, logLevels, longestTimerMs, type OptionValues } from '../../../core/index.ts'
import { checkFeatureGate, klogOptions } from '../../flags.ts'
import { parseServerHost, parseTarget, problemOfIdentifiers } from './values.ts'

const server = 'Tunnel server'
const identity = 'Identity'
const nodes = 'From this node to the control plane'
const count = 'Number of servers'
const limits = 'Limits'
const endpoints = 'Health and metrics'
const running = 'Running'
const upstream = 'Accepted for compatibility'

const file = { type: 'string', default: '', placeholder: 'FILE' } as const
const port = { type: 'integer', min: 0, max: 65_535, placeholder: 'PORT' } as const

const checkServerHost = (text: string): string | undefined =>
  parseServerHost(text) ? undefined : 'must be a host name or an IP address, with or without a port'

const checkServerName = (text: string): string | undefined =>
  isIP(text) === 0 ? undefined : 'must be a name: TLS has no server names that are addresses'

function checkTarget(text: string): string | undefined {
  const parsed = parseTarget(text)
  return 'problem' in parsed ? parsed.problem : undefined
}

/** Every option of the tunnel agent; the names and defaults are those of Konnectivity's where it has one. */
export const tunnelAgentOptions = defineOptions({
  'proxy-server-host': {
    type: 'string',
    repeatable: true,
    default: ['127.0.0.1'],
    check: checkServerHost,
    placeholder: 'HOST',
    group: server,
    describe:
      'tunnel server to connect to; all addresses of a name are tried, and several may be given',
  },
  'proxy-server-port': {
    ...port,
    min: 1,
    default: 8091,
    group: server,
    describe: 'port of the tunnel server, where its host does not say another',
  },
  'proxy-server-name': {
    type: 'string',
    check: checkServerName,
    defaultText: 'the host, unless that is an address',
    placeholder: 'NAME',
    group: server,
    describe: 'name that the certificate of the server must have, and that load balancers see',
  },
  'ca-cert': {
    ...file,
    group: server,
    describe: 'CAs of the tunnel server, PEM; required, and read at every connect',
  },
  'alpn-proto': {
    type: 'string',
    repeatable: true,
    placeholder: 'NAME',
    group: server,
    describe: 'protocol to offer in TLS beside h2, for load balancers that choose by it',
  },
  'keepalive-time': {
    type: 'duration',
    default: 3_600_000,
    group: server,
    describe: 'how often to ask a silent server whether it is there; every 35s at the latest',
  },
  'agent-cert': {
    ...file,
    group: identity,
    describe: 'client certificate, PEM; read at every connect',
  },
  'agent-key': { ...file, group: identity, describe: 'key of the client certificate, PEM' },
  'service-account-token-path': {
    ...file,
    group: identity,
    describe: 'token that tells the server who this agent is; read at every connect',
  },
  'agent-id': {
    type: 'string',
    env: 'PROXY_AGENT_ID',
    defaultText: 'a new UUID at every start',
    check: (text) => (/^[\x21-\x7e]{0,256}$/.test(text) ? undefined : 'must be printable ASCII'),
    group: identity,
    describe: 'name of this agent, unlike that of any other',
  },
  'agent-identifiers': {
    type: 'string',
    default: '',
    check: problemOfIdentifiers,
    group: identity,
    describe: 'what this agent can reach, for example host=node1&ipv4=10.0.0.7&default-route=true',
  },
  target: {
    type: 'string',
    repeatable: true,
    check: checkTarget,
    placeholder: 'HOST:PORT:LOCAL_PORT',
    group: nodes,
    describe: 'address in the control plane to open a local port for; also as LOCAL_PORT:HOST:PORT',
  },
  'bind-address': {
    type: 'address',
    group: nodes,
    describe: 'address of this node for the local ports; without it there are none',
  },
  'create-interface': {
    type: 'boolean',
    default: false,
    group: nodes,
    describe: 'put the bind address on a dummy interface if no interface has it (Linux, root)',
  },
  'refuse-unusable-bind-address': {
    type: 'boolean',
    default: false,
    group: nodes,
    describe:
      'do not start with a loopback or link-local bind address, which Endpoints cannot have',
  },
  'feature-gates': {
    type: 'string',
    repeatable: true,
    check: checkFeatureGate,
    placeholder: 'NAME=BOOL',
    group: nodes,
    describe:
      'NodeToMasterTraffic=true allows the local ports; EnableClusterToMasterTraffic is the same',
  },
  'sync-interval': {
    type: 'duration',
    min: 1,
    max: longestTimerMs,
    default: 1_000,
    group: count,
    describe: 'how often to see whether there is a connection to every server',
  },
  'sync-interval-cap': {
    type: 'duration',
    min: 1,
    max: longestTimerMs,
    default: 10_000,
    group: count,
    describe: 'longest pause after connections that failed',
  },
  'sync-forever': {
    type: 'boolean',
    default: false,
    group: count,
    describe: 'go on connecting when all known servers are reached, to find new ones',
  },
  'count-server-leases': {
    type: 'boolean',
    default: false,
    group: count,
    describe: 'count the servers by their Leases in the cluster',
  },
  'server-count-source': {
    type: 'choice',
    choices: ['default', 'max', ''],
    default: 'default',
    group: count,
    describe: 'default uses one source, the Leases if they are counted; max the larger of both',
  },
  'lease-namespace': {
    type: 'string',
    default: 'kube-system',
    group: count,
    describe: 'namespace of the Leases',
  },
  'lease-label-selector': {
    type: 'string',
    default: 'k8s-app=konnectivity-server',
    group: count,
    describe: 'which Leases are those of servers',
  },
  'lease-label': { type: 'string', group: count, describe: 'older name of --lease-label-selector' },
  kubeconfig: {
    ...file,
    defaultText: 'that of the Pod it runs in',
    group: count,
    describe: 'how to reach the cluster that has the Leases',
  },
  'max-concurrent-dials': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 1_000,
    group: limits,
    describe: 'connections to targets that may be in the making at a time; more of them wait',
  },
  'drain-timeout': {
    type: 'duration',
    max: 86_400_000,
    default: 30_000,
    group: running,
    describe: 'at the end, how long to go on serving connections that are open',
  },
  'health-server-host': {
    type: 'string',
    default: '',
    defaultText: 'all',
    group: endpoints,
    describe: 'address for health and metrics',
  },
  'health-server-port': {
    ...port,
    default: 8093,
    group: endpoints,
    describe: 'port for health and metrics; 0 takes a free one',
  },
  'admin-bind-address': {
    type: 'string',
    default: '127.0.0.1',
    group: endpoints,
    describe: 'address of the admin port',
  },
  'admin-server-port': {
    ...port,
    default: 8094,
    group: endpoints,
    describe: 'admin port; 0 takes a free one',
  },
  'enable-profiling': {
    type: 'boolean',
    default: false,
    group: endpoints,
    describe: 'profiles at /debug/pprof of the admin port, as the V8 engine makes them',
  },
  'enable-contention-profiling': {
    type: 'boolean',
    default: false,
    group: upstream,
    describe: 'accepted with --enable-profiling; there are no locks to profile',
  },
  'probe-interval': {
    type: 'duration',
    default: 1_000,
    group: upstream,
    describe: 'accepted; a lost connection is noticed at once',
  },
  'warn-on-channel-limit': {
    type: 'boolean',
    default: false,
    group: upstream,
    describe: 'accepted; queues are bounded in bytes',
  },
  'xfr-channel-size': {
    type: 'integer',
    min: 1,
    default: 150,
    group: upstream,
    describe: 'accepted; queues are bounded in bytes',
  },
  'kube-api-content-type': {
    type: 'string',
    default: 'application/vnd.kubernetes.protobuf',
    group: upstream,
    describe: 'accepted; JSON is used',
  },
  'log-level': {
    type: 'choice',
    choices: logLevels,
    default: 'info',
    group: running,
    describe: 'least important messages to log',
  },
  'log-format': {
    type: 'choice',
    choices: ['auto', 'text', 'json'],
    default: 'auto',
    group: running,
    describe: 'how to write log lines; auto is text on a terminal, else json',
  },
  config: {
    type: 'path',
    placeholder: 'FILE',
    group: running,
    describe: 'YAML file with options by their names, weaker than flags and environment',
  },
  ...klogOptions,
})

/** The values of the agent's options once they are read. */
export type TunnelAgentOptions = OptionValues<typeof tunnelAgentOptions>

const propertyOf = (name: string): string =>
  name.replaceAll(/-([a-z\d])/g, (_, letter: string) => letter.toUpperCase())

/** Options for an agent that another program runs: what is not given has its default. */
export function tunnelAgentOptionValues(given: Partial<TunnelAgentOptions>): TunnelAgentOptions {
  const defaults = Object.entries(tunnelAgentOptions).map(([name, declaration]) => {
    const isList = 'repeatable' in declaration
    const fallback = 'default' in declaration ? declaration.default : undefined
    return [propertyOf(name), fallback ?? (isList ? [] : undefined)] as const
  })
  // Every option has a value of its declared type now.
  return { ...(Object.fromEntries(defaults) as unknown as TunnelAgentOptions), ...given }
}
