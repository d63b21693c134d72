import { isIP } from 'node:net'
import { defineOptions, logLevels, longestTimerMs, type OptionValues } from '../../core/index.ts'
import {
  addonOptions,
  checkOrigin,
  discoveryOptions,
  oidcOptions,
  storageOptions,
  tunnelOptions,
} from './feature-options.ts'

const serving = 'Serving'
const identity = 'Identity'
const cluster = 'Cluster'
const serviceAccounts = 'Service accounts'
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
  /^(?:0\.0\.0\.0|::)$/.test(text) ? 'must be an address that others can dial' : undefined

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
    describe: 'port for HTTPS; 0 takes a free one',
  },
  'advertise-address': {
    type: 'address',
    check: checkOwnAddress,
    defaultText: 'the first bound address that others can dial',
    group: serving,
    describe: 'address at which the members of the cluster reach this server',
  },
  'external-hostname': {
    type: 'string',
    check: checkHost,
    placeholder: 'HOST',
    defaultText: 'the advertise address',
    group: serving,
    describe: 'name under which the outside knows this server, as in its issuer URL',
  },
  'tls-cert-file': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'made by the own PKI',
    group: serving,
    describe: 'serving certificate with its chain, PEM; read again when it changes',
  },
  'tls-private-key-file': {
    type: 'path',
    placeholder: 'FILE',
    group: serving,
    describe: 'key of the serving certificate, PEM',
  },
  'tls-san': {
    type: 'string',
    repeatable: true,
    check: checkHost,
    placeholder: 'HOST',
    group: serving,
    describe: 'further name or address in the serving certificate of the own PKI',
  },
  'tls-min-version': {
    type: 'choice',
    choices: ['VersionTLS12', 'VersionTLS13'],
    default: 'VersionTLS12',
    group: serving,
    describe: 'oldest TLS version to accept',
  },
  'allowed-origin': {
    type: 'string',
    repeatable: true,
    check: checkOrigin,
    placeholder: 'ORIGIN',
    group: serving,
    describe:
      'other origin whose pages may write and open WebSockets with the rights of their visitors; none unless given',
  },
  'client-ca-file': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'the own cluster CA',
    group: identity,
    describe: 'CA of client certificates: CN is the user, O the groups',
  },
  'token-auth-file': {
    type: 'path',
    placeholder: 'FILE',
    group: identity,
    describe:
      'bearer tokens as CSV lines of token, user, uid and groups; read again when it changes',
  },
  'anonymous-auth': {
    type: 'boolean',
    default: true,
    group: identity,
    describe: 'answer health, version and cluster-info without a credential',
  },
  'requestheader-client-ca-file': {
    type: 'path',
    placeholder: 'FILE',
    group: identity,
    describe: 'CA of front proxies, whose identity headers are believed',
  },
  'requestheader-allowed-names': {
    type: 'string',
    repeatable: true,
    placeholder: 'NAME',
    defaultText: 'any name under that CA',
    group: identity,
    describe: 'common name that a front proxy may have',
  },
  'requestheader-username-headers': {
    type: 'string',
    repeatable: true,
    default: ['X-Remote-User'],
    check: checkHeader,
    placeholder: 'HEADER',
    group: identity,
    describe: 'header in which a front proxy names the user',
  },
  'requestheader-uid-headers': {
    type: 'string',
    repeatable: true,
    default: ['X-Remote-Uid'],
    check: checkHeader,
    placeholder: 'HEADER',
    group: identity,
    describe: 'header in which a front proxy gives the uid of the user',
  },
  'requestheader-group-headers': {
    type: 'string',
    repeatable: true,
    default: ['X-Remote-Group'],
    check: checkHeader,
    placeholder: 'HEADER',
    group: identity,
    describe: 'header in which a front proxy names a group',
  },
  'requestheader-extra-headers-prefix': {
    type: 'string',
    repeatable: true,
    default: ['X-Remote-Extra-'],
    check: checkHeader,
    placeholder: 'PREFIX',
    group: identity,
    describe: 'beginning of headers in which a front proxy tells more of the user',
  },
  ...oidcOptions,
  'service-account-issuer': {
    type: 'string',
    repeatable: true,
    placeholder: 'URL',
    defaultText: 'https://HOST:PORT of the first start, which is then kept',
    group: serviceAccounts,
    describe: 'issuer of tokens: the first one signs, all are accepted',
  },
  'service-account-jwks-uri': {
    type: 'string',
    placeholder: 'URL',
    defaultText: '/openid/v1/jwks at the external address',
    group: serviceAccounts,
    describe: 'where outsiders find the key set, if not at this server',
  },
  'service-account-signing-key-file': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'keys kept in the cluster, which can be rotated',
    group: serviceAccounts,
    describe: 'private key that signs tokens, PEM',
  },
  'service-account-key-file': {
    type: 'path',
    repeatable: true,
    placeholder: 'FILE',
    group: serviceAccounts,
    describe: 'further keys whose tokens are accepted, PEM, public or private',
  },
  'api-audiences': {
    type: 'string',
    repeatable: true,
    placeholder: 'AUDIENCE',
    defaultText: 'the issuers',
    group: serviceAccounts,
    describe: 'audience that the tokens of API clients must name',
  },
  'service-account-max-token-expiration': {
    type: 'duration',
    min: 0,
    default: 0,
    group: serviceAccounts,
    describe: 'longest life of a token that can be asked for, an hour or more; 0 sets no limit',
  },
  'service-account-extend-token-expiration': {
    type: 'boolean',
    default: true,
    group: serviceAccounts,
    describe: 'let the default tokens of Pods live a year, for clients that do not read them again',
  },
  'service-account-key-rotation-period': {
    type: 'duration',
    min: 0,
    default: 0,
    group: serviceAccounts,
    describe:
      'replace the key that signs tokens after this time, a day or more; 0 leaves it to you',
  },
  'service-account-issuer-public': {
    type: 'boolean',
    default: false,
    group: serviceAccounts,
    describe: 'show the discovery document and the key set to everybody, without a credential',
  },
  'service-account-issuer-placeholders': {
    type: 'boolean',
    default: false,
    group: serviceAccounts,
    describe: 'add endpoints without meaning to the discovery document, for parsers that insist',
  },
  'service-cluster-ip-range': {
    type: 'cidr',
    repeatable: true,
    default: ['10.96.0.0/12'],
    group: cluster,
    describe: 'range from which Services get their cluster IPs; a second one of the other family',
  },
  'event-ttl': {
    type: 'duration',
    min: 1_000,
    default: 3_600_000,
    group: cluster,
    describe: 'how long Events are kept',
  },
  ...tunnelOptions,
  ...addonOptions,
  ...discoveryOptions,
  'audit-log-path': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'audit.log in the data directory',
    group: audit,
    describe: 'where to write one line per request; - is the standard output',
  },
  'audit-log-maxsize': {
    type: 'integer',
    min: 1,
    max: 10_000,
    default: 100,
    placeholder: 'MEGABYTES',
    group: audit,
    describe: 'size at which the audit log is moved aside and a new one begun',
  },
  'audit-log-maxbackup': {
    type: 'integer',
    min: 0,
    max: 10_000,
    default: 10,
    group: audit,
    describe: 'how many old audit logs to keep; 0 keeps all',
  },
  'max-requests-inflight': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 400,
    group: limits,
    describe:
      'reading requests of users at a time, and as many of service accounts; one user or namespace gets a quarter',
  },
  'max-mutating-requests-inflight': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 200,
    group: limits,
    describe:
      'writing requests of users at a time, and as many of service accounts; one user or namespace gets a quarter',
  },
  'max-connections': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 10_000,
    group: limits,
    describe: 'open connections at a time; a quarter of them may be unauthenticated',
  },
  'max-connections-per-address': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 5_000,
    group: limits,
    describe: 'open connections at a time from one source address',
  },
  'max-request-body-bytes': {
    type: 'bytes',
    min: 1_024,
    max: 2 ** 30,
    default: 3 * 2 ** 20,
    group: limits,
    describe: 'largest body of a request',
  },
  ...storageOptions,
  'request-timeout': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 60_000,
    group: limits,
    describe: 'time for a request that is no watch or stream',
  },
  'min-request-timeout': {
    type: 'integer',
    min: 0,
    max: 1_000_000,
    default: 1_800,
    placeholder: 'SECONDS',
    group: limits,
    describe: 'watches without a timeout of their own end after this or up to twice as long',
  },
  'data-dir': {
    type: 'path',
    placeholder: 'DIR',
    defaultText: '/var/lib/sallyport for root, else sallyport in the XDG data directory',
    group: running,
    describe: 'directory of all state: keys, store, audit log',
  },
  'shutdown-delay-duration': {
    type: 'duration',
    max: 3_600_000,
    default: 0,
    group: running,
    describe: 'at the end, how long to serve on while /readyz already says no',
  },
  'shutdown-grace-period': {
    type: 'duration',
    max: 3_600_000,
    default: 30_000,
    group: running,
    describe: 'at the end, how long to wait for requests under way',
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
})

/** The values of the server's options once they are read. */
export type ServerOptions = OptionValues<typeof serverOptions>

/** What is wrong with options that are fine each by itself. */
export function problemsOfServerOptions(options: ServerOptions): string[] {
  const problems: string[] = []
  if ((options.tlsCertFile === undefined) !== (options.tlsPrivateKeyFile === undefined)) {
    problems.push('--tls-cert-file and --tls-private-key-file only go together')
  }
  if (options.requestheaderAllowedNames.length > 0 && !options.requestheaderClientCaFile) {
    problems.push('--requestheader-allowed-names needs --requestheader-client-ca-file')
  }
  if (options.egress === 'tunnel' && !options.tunnel) {
    problems.push('--egress tunnel needs --tunnel')
  }
  const families = options.serviceClusterIpRange.map((range) => isIP(range.split('/')[0] ?? ''))
  if (families.length === 0 || new Set(families).size !== families.length) {
    problems.push('--service-cluster-ip-range takes one range, or one of each IP family')
  }
  return problems
}
