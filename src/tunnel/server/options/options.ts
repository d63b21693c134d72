import { defineOptions, logLevels, longestTimerMs, type OptionValues } from '../../../core/index.ts'
import { checkHostPort } from '../../addresses.ts'
import { checkFeatureGate, klogOptions } from '../../flags.ts'
import { strategyNames } from '../strategies.ts'
import { checkCipherSuite, checkLabels, checkSniRoute, tlsVersions } from './values.ts'

const frontEnd = 'Front end (kube-apiserver)'
const agents = 'Agents'
const nodes = 'Traffic from nodes to the control plane'
const cluster = 'Cluster'
const endpoints = 'Health and metrics'
const running = 'Running'

const file = (group: string, describe: string) =>
  ({ type: 'string', default: '', placeholder: 'FILE', group, describe }) as const

const bindAddress = (group: string, describe: string, fallback = '') =>
  ({
    type: 'string',
    default: fallback,
    placeholder: 'ADDRESS',
    ...(fallback === '' && { defaultText: 'all addresses' }),
    group,
    describe,
  }) as const

const port = (group: string, number: number, describe: string) =>
  ({
    type: 'integer',
    min: 0,
    max: 65_535,
    default: number,
    placeholder: 'PORT',
    group,
    describe,
  }) as const

const time = (group: string, fallbackMs: number, describe: string) =>
  ({ type: 'duration', max: longestTimerMs, default: fallbackMs, group, describe }) as const

const text = (group: string, fallback: string, describe: string) =>
  ({ type: 'string', default: fallback, group, describe }) as const

const flag = (group: string, fallback: boolean, describe: string) =>
  ({ type: 'boolean', default: fallback, group, describe }) as const

const checkNumber = (value: string): string | undefined =>
  value !== '' && Number.isFinite(Number(value)) ? undefined : 'must be a number'

/** Every option of the tunnel server; names and defaults are those of Konnectivity's proxy-server. */
export const tunnelServerOptions = defineOptions({
  mode: {
    type: 'choice',
    choices: ['grpc', 'http-connect'],
    default: 'grpc',
    group: frontEnd,
    describe: 'protocol of the front end, as in the EgressSelectorConfiguration',
  },
  'uds-name': {
    type: 'string',
    default: '',
    placeholder: 'FILE',
    group: frontEnd,
    describe: 'unix socket to serve the front end on instead of TCP',
  },
  'delete-existing-uds-file': flag(frontEnd, true, 'remove a socket that is there already'),
  'server-port': port(frontEnd, 8090, 'TCP port of the front end; 0 with --uds-name'),
  'server-bind-address': bindAddress(frontEnd, 'address of the front end'),
  'server-cert': file(frontEnd, 'certificate of the front end, PEM; read again when it changes'),
  'server-key': file(frontEnd, 'key of the certificate of the front end, PEM'),
  'server-ca-cert': file(frontEnd, 'CA of the clients of the front end; required with TCP'),
  'frontend-keepalive-time': time(
    frontEnd,
    3_600_000,
    'silence after which a gRPC client is asked whether it is there; 0 never asks',
  ),
  'agent-port': port(agents, 8091, 'port on which agents connect; 0 takes a free one'),
  'agent-bind-address': bindAddress(agents, 'address on which agents connect'),
  'cluster-cert': file(agents, 'certificate shown to agents, PEM; read again when it changes'),
  'cluster-key': file(agents, 'key of the certificate shown to agents, PEM'),
  'cluster-ca-cert': file(agents, 'CA of agents; with it each must show a client certificate'),
  'agent-namespace': text(agents, '', 'namespace of the service account of agents with tokens'),
  'agent-service-account': text(agents, '', 'name of the service account of agents with tokens'),
  'authentication-audience': text(agents, '', "audience that agents' tokens must have"),
  'agent-token-review-period': time(
    agents,
    300_000,
    'how often the tokens of connected agents are reviewed again, until they end; 0 never, as upstream',
  ),
  'cut-expired-agents': flag(
    agents,
    false,
    'review the token of a connected agent at its end too, so that the agent has to come back with another one',
  ),
  'agent-identity-check': {
    type: 'choice',
    choices: ['', 'node', 'none'],
    default: '',
    defaultText: 'node with --kubeconfig, else none',
    placeholder: 'CHECK',
    group: agents,
    describe:
      "node: an address is an agent's if the cluster's Nodes, Pods and Services say so; none: if it announces it first",
  },
  'follow-revocations': flag(
    agents,
    false,
    'refuse and cut whose user or certificate is on the list of revoked ones in the cluster',
  ),
  'keepalive-time': time(
    agents,
    30_000,
    'silence after which an agent is asked whether it is there; 0 never asks',
  ),
  'proxy-strategies': {
    type: 'choice',
    choices: strategyNames,
    repeatable: true,
    default: ['default'],
    placeholder: 'STRATEGY',
    group: agents,
    describe: `ways to choose an agent, the first that finds one decides: ${strategyNames.join(', ')}`,
  },
  'backend-dial-timeout': time(
    agents,
    0,
    'time for an agent to answer a dial; 0 leaves it to --pending-dial-timeout',
  ),
  'pending-dial-timeout': {
    ...time(agents, 30_000, 'after this no dial is waited for, whatever else is set'),
    min: 1,
  },
  'server-id': {
    type: 'string',
    default: '',
    env: 'PROXY_SERVER_ID',
    check: (id) => (/^[\x21-\x7e]{0,256}$/.test(id) ? undefined : 'must be printable ASCII'),
    defaultText: 'a new UUID',
    group: agents,
    describe: 'identity of this server among several',
  },
  'server-count': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 1,
    group: agents,
    describe: 'number of servers that agents should connect to',
  },
  'cipher-suites': {
    type: 'string',
    repeatable: true,
    check: checkCipherSuite,
    group: agents,
    describe: 'TLS 1.2 cipher suites to allow on all ports, by their Go names',
  },
  'tls-min-version': {
    type: 'choice',
    choices: ['', ...tlsVersions],
    default: 'VersionTLS12',
    placeholder: 'VERSION',
    group: agents,
    describe: 'oldest TLS version on all ports; below VersionTLS12 nothing is served',
  },
  'feature-gates': {
    type: 'string',
    repeatable: true,
    check: checkFeatureGate,
    placeholder: 'NAME=BOOL',
    group: nodes,
    describe: 'NodeToMasterTraffic=true (or EnableClusterToMasterTraffic) lets agents dial',
  },
  'allowed-destination': {
    type: 'string',
    repeatable: true,
    check: checkHostPort,
    placeholder: 'HOST:PORT',
    group: nodes,
    describe: 'where agents may be connected to; without any they are refused',
  },
  'sni-route': {
    type: 'string',
    repeatable: true,
    check: checkSniRoute,
    placeholder: 'NAME=HOST:PORT',
    group: nodes,
    describe:
      'connects what agents dial to HOST:PORT if the TLS inside asks for NAME (*.DOMAIN for any name in it)',
  },
  kubeconfig: {
    ...file(
      cluster,
      'kubeconfig for token reviews, leases, agent identities and the list of revoked certificates',
    ),
    defaultText: 'the service account of the Pod, where one is needed',
  },
  'kubeconfig-qps': {
    ...text(cluster, '0', 'accepted; the server asks the cluster rarely and is not throttled'),
    check: checkNumber,
  },
  'kubeconfig-burst': {
    type: 'integer',
    min: -(2 ** 31),
    default: 0,
    group: cluster,
    describe: 'accepted; see --kubeconfig-qps',
  },
  'kube-api-content-type': text(
    cluster,
    'application/vnd.kubernetes.protobuf',
    'accepted; requests to the cluster are JSON',
  ),
  'enable-lease-controller': flag(cluster, false, 'publish a Lease so that agents count servers'),
  'lease-namespace': text(cluster, 'kube-system', 'namespace of the Leases'),
  'lease-label': {
    ...text(
      cluster,
      'k8s-app=konnectivity-server',
      'labels of the Leases; expired ones are removed',
    ),
    check: checkLabels,
  },
  'health-port': port(
    endpoints,
    8092,
    'port of /healthz, /readyz and /metrics; 0 takes a free one',
  ),
  'health-bind-address': bindAddress(endpoints, 'address of the health port'),
  'admin-port': port(endpoints, 8095, 'port of /metrics and /debug/pprof; 0 takes a free one'),
  'admin-bind-address': bindAddress(endpoints, 'address of the admin port', '127.0.0.1'),
  'enable-profiling': flag(endpoints, false, 'serve CPU profiles under /debug/pprof'),
  'enable-contention-profiling': flag(endpoints, false, 'accepted; there are no locks to profile'),
  'graceful-shutdown-timeout': time(
    running,
    0,
    'at the end, how long open connections may go on; 0 cuts them',
  ),
  'max-connection-buffer': {
    type: 'bytes',
    min: 64 * 1024,
    max: 2 ** 30,
    default: 64 * 2 ** 20,
    group: running,
    describe: 'bytes that may wait for a client which does not read; beyond, its connection is cut',
  },
  'max-agent-buffer': {
    type: 'bytes',
    min: 1024 * 1024,
    max: 2 ** 36,
    default: 256 * 2 ** 20,
    group: running,
    describe:
      'bytes that may wait in both directions over all connections of an agent; beyond, the largest is cut',
  },
  'xfr-channel-size': {
    type: 'integer',
    min: 1,
    default: 10,
    group: running,
    describe: 'accepted; buffers are bounded in bytes for each connection',
  },
  'frontend-write-channel-size': {
    type: 'integer',
    min: 1,
    default: 10,
    group: running,
    describe: 'accepted; see --xfr-channel-size',
  },
  'warn-on-channel-limit': flag(running, true, 'accepted; without effect'),
  'log-level': {
    type: 'choice',
    choices: logLevels,
    default: 'info',
    group: 'Logging',
    describe: 'least important messages to log',
  },
  'log-format': {
    type: 'choice',
    choices: ['auto', 'text', 'json'],
    default: 'auto',
    group: 'Logging',
    describe: 'how to write log lines; auto is text on a terminal, else json',
  },
  ...klogOptions,
  config: {
    type: 'path',
    placeholder: 'FILE',
    group: running,
    describe: 'YAML file with options by their names, weaker than flags and environment',
  },
})

/** The values of the tunnel server's options once they are read. */
export type TunnelServerOptions = OptionValues<typeof tunnelServerOptions>
