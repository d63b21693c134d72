import { isIP } from 'node:net'
import type { IdentityOutput } from '../addon/guard/index.ts'
import { defineOptions, logLevels, type OptionValues } from '../core/index.ts'
import { outputOption } from './cluster-source.ts'

const portPair = /^(\d{1,5})=(?:\[?([^[\]]+)\]?:)?(\d{1,5})$/

/** Reads `podPort=localPort` or `podPort=127.0.0.1:localPort`; undefined for anything else. */
export function parsePortPair(
  text: string,
): { listenPort: number; host: string | undefined; port: number } | undefined {
  const [, listen = '', host, port = ''] = portPair.exec(text) ?? []
  const pair = { listenPort: Number(listen), host, port: Number(port) }
  const isFit = listen !== '' && pair.listenPort <= 65_535 && pair.port >= 1 && pair.port <= 65_535
  return isFit && (host === undefined || isLoopback(host)) ? pair : undefined
}

const isLoopback = (host: string): boolean => isIP(host) > 0 && /^(?:127\.|::1$)/.test(host)
const loopbackOnly = (host: string): string | undefined =>
  isLoopback(host) ? undefined : 'must be a loopback address: nobody else may reach the add-on'
const headerName = (name: string): string | undefined =>
  /^[A-Za-z][\w-]*$/.test(name) ? undefined : 'must be the name of a header'
const serviceName = (name: string): string | undefined =>
  /^[a-z\d-]+\/[a-z\d-]+$/.test(name) ? undefined : 'must be namespace/name of a Service'

/** The options of `sallyport guard`; those of the proposal may be written with one dash. */
export const guardOptions = defineOptions({
  'listen-on-pod-ip': {
    type: 'boolean',
    default: true,
    short: 'listen-on-pod-ip',
    group: 'Ports',
    describe: "listen on the Pod's addresses: those of POD_IPS or POD_IP, else of its interfaces",
  },
  'listen-address': {
    type: 'address',
    repeatable: true,
    group: 'Ports',
    describe: 'listen on this address instead; never 0.0.0.0 or ::',
  },
  'listen-port': {
    type: 'integer',
    default: 80,
    min: 0,
    max: 65_535,
    short: 'listen-port',
    group: 'Ports',
    describe: 'port to listen on',
  },
  'forward-ip': {
    type: 'address',
    default: '127.0.0.1',
    short: 'forward-ip',
    check: loopbackOnly,
    group: 'Ports',
    describe: 'loopback address on which the add-on listens',
  },
  'forward-port': {
    type: 'integer',
    default: 80,
    min: 1,
    max: 65_535,
    short: 'forward-port',
    group: 'Ports',
    describe: 'port on which the add-on listens',
  },
  forward: {
    type: 'string',
    repeatable: true,
    placeholder: 'PORT=LOCALPORT',
    check: (text) =>
      parsePortPair(text) ? undefined : 'must be PORT=LOCALPORT, or PORT=127.0.0.1:LOCALPORT',
    group: 'Ports',
    describe: 'a port and the port of the add-on behind it, in place of the two above',
  },
  'health-port': {
    type: 'integer',
    default: 8081,
    min: 0,
    max: 65_535,
    group: 'Ports',
    describe: 'port of /healthz, /readyz and /metrics',
  },
  'probe-path': {
    type: 'string',
    placeholder: 'PATH',
    check: (path) =>
      /^\/[!-"$-~]*$/.test(path) ? undefined : 'must be a path as requests have it',
    group: 'Ports',
    describe: "path of the add-on that the health port also answers, for the kubelet's probes",
  },
  keys: {
    type: 'choice',
    choices: ['x5c', 'handshake', 'jwks'],
    repeatable: true,
    default: ['x5c'],
    group: 'Trust',
    describe:
      "where keys come from: the certificate in the token, the API server's handshake, its JWK set",
  },
  'ca-file': {
    type: 'path',
    default: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
    placeholder: 'FILE',
    group: 'Trust',
    describe: "the cluster's CA, read again whenever it changes",
  },
  'api-server-name': {
    type: 'string',
    default: 'kubernetes.default.svc',
    placeholder: 'NAME',
    group: 'Trust',
    describe: "the name that the signer's certificate must bear",
  },
  'jwks-url': {
    type: 'string',
    placeholder: 'URL',
    check: (url) => (url.startsWith('https://') ? undefined : 'must be an https address'),
    group: 'Trust',
    describe: "address of the JWK set, if it is not the API server's own",
  },
  'token-issuer': {
    type: 'string',
    default: 'sallyport.dev/addon',
    group: 'Trust',
    describe: 'the issuer that tokens must name',
  },
  'clock-skew': {
    type: 'duration',
    default: 10_000,
    min: 0,
    max: 60_000,
    group: 'Trust',
    describe: 'how far the clocks of API server and Pod may differ',
  },
  'max-token-lifetime': {
    type: 'duration',
    default: 300_000,
    min: 1_000,
    group: 'Trust',
    describe: 'refuse tokens that were made for longer',
  },
  audience: {
    type: 'string',
    repeatable: true,
    placeholder: 'NAMESPACE/NAME',
    check: serviceName,
    group: 'Services',
    describe: 'a Service of this Pod; given, the cluster is not asked which Services select it',
  },
  namespace: {
    type: 'string',
    env: 'POD_NAMESPACE',
    group: 'Services',
    describe: "the Pod's namespace",
    defaultText: "the service account's",
  },
  'pod-name': {
    type: 'string',
    env: 'POD_NAME',
    group: 'Services',
    describe: "the Pod's name, by which its labels are asked for",
    defaultText: 'HOSTNAME',
  },
  'audience-max-age': {
    type: 'duration',
    default: 300_000,
    min: 1_000,
    group: 'Services',
    describe: 'how long the last list of Services is believed while the cluster does not answer',
  },
  kubeconfig: {
    type: 'path',
    placeholder: 'FILE',
    group: 'Services',
    describe: 'reach the cluster by this kubeconfig',
    defaultText: "the Pod's service account",
  },
  context: {
    type: 'string',
    placeholder: 'NAME',
    group: 'Services',
    describe: 'context of that kubeconfig',
  },
  'user-header': {
    type: 'string',
    default: 'X-Authenticated-User',
    placeholder: 'NAME',
    check: headerName,
    group: 'Identity',
    describe: 'header that tells the add-on its user',
  },
  'groups-header': {
    type: 'string',
    placeholder: 'NAME',
    check: headerName,
    group: 'Identity',
    describe: "header with the user's groups as a JSON list, if the Service asks for groups",
  },
  'uid-header': {
    type: 'string',
    placeholder: 'NAME',
    check: headerName,
    group: 'Identity',
    describe: "header with the user's uid",
  },
  'allow-request-header': {
    type: 'string',
    repeatable: true,
    placeholder: 'NAME',
    check: headerName,
    group: 'Identity',
    describe:
      'pass on this header of clients although its name looks like a claim to an identity, as X-Auth-Token does',
  },
  impersonation: {
    type: 'boolean',
    default: false,
    group: 'Identity',
    describe: 'also tell the user as Impersonate-* headers, for add-ons that pass them on',
  },
  'max-request-duration': {
    type: 'duration',
    default: 300_000,
    min: 1_000,
    group: 'Limits',
    describe: 'cut requests that take longer',
  },
  'body-idle-timeout': {
    type: 'duration',
    default: 60_000,
    min: 0,
    group: 'Limits',
    describe: 'refuse requests whose body brings less than 4 KiB in this time; 0 for no limit',
  },
  'max-header-count': {
    type: 'integer',
    default: 100,
    min: 10,
    max: 1_000,
    group: 'Limits',
    describe: 'refuse requests with more header lines',
  },
  'max-tunnel-duration': {
    type: 'duration',
    default: 3_600_000,
    min: 1_000,
    group: 'Limits',
    describe: 'cut WebSockets that last longer, however often their token is renewed',
  },
  'tunnel-idle-timeout': {
    type: 'duration',
    default: 600_000,
    min: 1_000,
    group: 'Limits',
    describe: 'cut WebSockets on which nothing is said for so long',
  },
  'access-log': {
    type: 'choice',
    choices: ['all', 'refused', 'none'],
    default: 'all',
    group: 'Output',
    describe: 'requests to tell on standard error, one JSON line each',
  },
  'log-level': {
    type: 'choice',
    choices: logLevels,
    default: 'info',
    group: 'Output',
    describe: 'what else to tell',
  },
  ...outputOption,
})

/** What the options of a guard were set to. */
export type GuardValues = OptionValues<typeof guardOptions>

/** Under which names the add-on is told its user. */
export const outputOf = ({
  userHeader,
  groupsHeader,
  uidHeader,
  impersonation,
}: GuardValues): IdentityOutput => ({
  userHeader,
  impersonation,
  ...(groupsHeader !== undefined && { groupsHeader }),
  ...(uidHeader !== undefined && { uidHeader }),
})
