import { isIP } from 'node:net'
import { defineOptions, logLevels, longestTimerMs, type OptionValues } from '../../core/index.ts'
import {
  addonOptions,
  bootstrapOptions,
  checkOrigin,
  issuerOptions,
  oidcOptions,
  tunnelOptions,
} from '../features/options.ts'

const serving = 'Serving'
const identity = 'Identity'
const cluster = 'Cluster'
const audit = 'Audit'
const limits = 'Limits'
const running = 'Running'

const hostName =
  /^(?=.{1,253}$)(?:\*\.)?[a-z\d](?:[-a-z\d]*[a-z\d])?(?:\.[a-z\d](?:[-a-z\d]*[a-z\d])?)*$/i

const checkHost = (text: string): string | undefined =>
  isIP(text) !== 0 || hostName.test(text) ? undefined : 'must be a host name or an IP address'

const checkHeader = (text: string): string | undefined =>
  /^[A-Za-z\d-]{1,64}$/.test(text) ? undefined : 'must be a header name'

const checkOwnAddress = (text: string): string | undefined =>
  /^(?:0\.0\.0\.0|::)$/.test(text) ? 'must not be a wildcard address' : undefined

/** Every option of the API server; the names are kube-apiserver's where it has one. */
export const serverOptions = defineOptions({
  'bind-address': {
    type: 'address',
    repeatable: true,
    default: ['0.0.0.0', '::'],
    group: serving,
    describe: 'address to listen on',
  },
  'secure-port': {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: 6443,
    placeholder: 'PORT',
    group: serving,
    describe: 'port for HTTPS; 0 selects a free port',
  },
  'advertise-address': {
    type: 'address',
    check: checkOwnAddress,
    defaultText: 'the first bound address that is reachable from other machines',
    group: serving,
    describe: 'address at which members of the cluster reach this server',
  },
  'external-hostname': {
    type: 'string',
    check: checkHost,
    placeholder: 'HOST',
    defaultText: 'the advertise address',
    group: serving,
    describe: 'external name of this server, as in its issuer URL',
  },
  'tls-cert-file': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'issued by the PKI of the server',
    group: serving,
    describe: 'serving certificate with its chain, PEM; reloaded when it changes',
  },
  'tls-private-key-file': {
    type: 'path',
    placeholder: 'FILE',
    group: serving,
    describe: 'private key of the serving certificate, PEM',
  },
  'tls-san': {
    type: 'string',
    repeatable: true,
    check: checkHost,
    placeholder: 'HOST',
    group: serving,
    describe: 'additional name or address in the serving certificate, if the server issues it',
  },
  'tls-min-version': {
    type: 'choice',
    choices: ['VersionTLS12', 'VersionTLS13'],
    default: 'VersionTLS12',
    group: serving,
    describe: 'minimum TLS version',
  },
  'allowed-origin': {
    type: 'string',
    repeatable: true,
    check: checkOrigin,
    placeholder: 'ORIGIN',
    group: serving,
    describe:
      'other origin whose pages may write and open WebSockets with the permissions of their visitors',
  },
  'client-ca-file': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'the CA of the cluster',
    group: identity,
    describe: 'CA of client certificates: CN is the user, O the groups',
  },
  'token-auth-file': {
    type: 'path',
    placeholder: 'FILE',
    group: identity,
    describe: 'bearer tokens as CSV lines of token, user, uid and groups; reloaded when it changes',
  },
  'anonymous-auth': {
    type: 'boolean',
    default: true,
    group: identity,
    describe: 'serve health, version and cluster-info without a credential',
  },
  'requestheader-client-ca-file': {
    type: 'path',
    placeholder: 'FILE',
    group: identity,
    describe: 'CA of front proxies whose identity headers are trusted',
  },
  'requestheader-allowed-names': {
    type: 'string',
    repeatable: true,
    placeholder: 'NAME',
    defaultText: 'any name under that CA',
    group: identity,
    describe: 'permitted common name of a front proxy',
  },
  'requestheader-username-headers': {
    type: 'string',
    repeatable: true,
    default: ['X-Remote-User'],
    check: checkHeader,
    placeholder: 'HEADER',
    group: identity,
    describe: 'header with the user name from a front proxy',
  },
  'requestheader-uid-headers': {
    type: 'string',
    repeatable: true,
    default: ['X-Remote-Uid'],
    check: checkHeader,
    placeholder: 'HEADER',
    group: identity,
    describe: 'header with the uid of the user from a front proxy',
  },
  'requestheader-group-headers': {
    type: 'string',
    repeatable: true,
    default: ['X-Remote-Group'],
    check: checkHeader,
    placeholder: 'HEADER',
    group: identity,
    describe: 'header with a group from a front proxy',
  },
  'requestheader-extra-headers-prefix': {
    type: 'string',
    repeatable: true,
    default: ['X-Remote-Extra-'],
    check: checkHeader,
    placeholder: 'PREFIX',
    group: identity,
    describe: 'prefix of headers with extra fields of the user from a front proxy',
  },
  ...oidcOptions,
  ...issuerOptions,
  'service-cluster-ip-range': {
    type: 'cidr',
    repeatable: true,
    default: ['10.96.0.0/12'],
    group: cluster,
    describe: 'range of the cluster IPs of Services; a second one for the other IP family',
  },
  'event-ttl': {
    type: 'duration',
    min: 1_000,
    default: 3_600_000,
    group: cluster,
    describe: 'how long to keep Events',
  },
  ...tunnelOptions,
  ...addonOptions,
  ...bootstrapOptions,
  'audit-log-path': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'audit.log in the data directory',
    group: audit,
    describe: 'file for one line per request; - for the standard output',
  },
  'audit-log-maxsize': {
    type: 'integer',
    min: 1,
    max: 10_000,
    default: 100,
    placeholder: 'MEGABYTES',
    group: audit,
    describe: 'size at which the audit log is rotated',
  },
  'audit-log-maxbackup': {
    type: 'integer',
    min: 0,
    max: 10_000,
    default: 10,
    group: audit,
    describe: 'number of rotated audit logs to keep; 0 keeps all',
  },
  'max-requests-inflight': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 400,
    group: limits,
    describe:
      'maximum number of concurrent reading requests of users, and as many of service accounts; one user or namespace gets a quarter',
  },
  'max-mutating-requests-inflight': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 200,
    group: limits,
    describe:
      'maximum number of concurrent writing requests of users, and as many of service accounts; one user or namespace gets a quarter',
  },
  'max-connections': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 10_000,
    group: limits,
    describe: 'maximum number of open connections; a quarter of them may be unauthenticated',
  },
  'max-connections-per-address': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 5_000,
    group: limits,
    describe: 'maximum number of open connections from one source address',
  },
  'max-request-body-bytes': {
    type: 'bytes',
    min: 1_024,
    max: 2 ** 30,
    default: 3 * 2 ** 20,
    group: limits,
    describe: 'maximum size of a request body',
  },
  'max-namespace-objects': {
    type: 'integer',
    min: 0,
    max: 1_000_000_000,
    // Kubernetes' own threshold for the Services of a namespace, and more than that for Pods.
    default: 5_000,
    group: limits,
    describe:
      'maximum number of objects in one namespace; its annotation sallyport.dev/max-objects takes precedence; 0 is no limit',
  },
  'max-namespace-bytes': {
    type: 'bytes',
    min: 0,
    max: 2 ** 50,
    default: 64 * 2 ** 20,
    group: limits,
    describe:
      'maximum bytes stored in one namespace; its annotation sallyport.dev/max-bytes takes precedence; 0 is no limit',
  },
  'max-store-objects': {
    type: 'integer',
    min: 0,
    max: 1_000_000_000,
    default: 500_000,
    group: limits,
    describe:
      'maximum number of objects in total; administrators may write 10 % more, nodes 5 %; 0 is no limit',
  },
  'max-store-bytes': {
    type: 'bytes',
    min: 0,
    max: 2 ** 50,
    // The quota of etcd.
    default: 2 * 2 ** 30,
    group: limits,
    describe:
      'maximum bytes stored in total; administrators may write 10 % more, nodes 5 %; 0 is no limit',
  },
  'request-timeout': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 60_000,
    group: limits,
    describe: 'timeout of requests other than watches and streams',
  },
  'min-request-timeout': {
    type: 'integer',
    min: 0,
    max: 1_000_000,
    default: 1_800,
    placeholder: 'SECONDS',
    group: limits,
    describe: 'watches without their own timeout end after this time or up to twice as long',
  },
  'data-dir': {
    type: 'path',
    placeholder: 'DIR',
    defaultText: '/var/lib/sallyport for root, else sallyport in the XDG data directory',
    group: running,
    describe: 'directory for all state: keys, store, audit log',
  },
  'shutdown-delay-duration': {
    type: 'duration',
    max: 3_600_000,
    default: 0,
    group: running,
    describe: 'at shutdown, how long to continue serving while /readyz already fails',
  },
  'shutdown-grace-period': {
    type: 'duration',
    max: 3_600_000,
    default: 30_000,
    group: running,
    describe: 'at shutdown, how long to wait for requests under way',
  },
  'log-level': {
    type: 'choice',
    choices: logLevels,
    default: 'info',
    group: running,
    describe: 'minimum level of messages to log',
  },
  'log-format': {
    type: 'choice',
    choices: ['auto', 'text', 'json'],
    default: 'auto',
    group: running,
    describe: 'format of log lines; auto is text on a terminal, else json',
  },
  config: {
    type: 'path',
    placeholder: 'FILE',
    group: running,
    describe: 'YAML file with options by their names; flags and environment take precedence',
  },
})

/** The values of the server's options once they are read. */
export type ServerOptions = OptionValues<typeof serverOptions>
