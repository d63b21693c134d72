import { longestTimerMs, type OptionTable } from '../../core/index.ts'

const addon = 'Add-ons'

/** Origins are compared with what browsers send: lower case, no default port, no path. */
export const checkOrigin = (text: string): string | undefined =>
  /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text
    ? undefined
    : 'must be an origin, as in https://front.example'

const checkNamespace = (text: string): string | undefined =>
  /^(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)?$/.test(text)
    ? undefined
    : 'must be the name of a namespace'

/** Options of the proxy to Services, Pods and nodes, and of the identity that it tells add-ons. */
export const addonOptions = {
  'addon-token-key': {
    type: 'choice',
    choices: ['serving', 'dedicated'],
    default: 'serving',
    group: addon,
    describe:
      'what signs the tokens that tell add-ons their user: the serving key, or a key of its own that is published',
  },
  'addon-requests-per-second': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100,
    group: addon,
    describe: 'proxied requests of one user per second',
  },
  'addon-request-burst': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 400,
    group: addon,
    describe: 'proxied requests that one user may send at once after a pause',
  },
  'addon-max-requests': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100,
    group: addon,
    describe: 'proxied requests of one user at a time',
  },
  'addon-max-tunnels': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100,
    group: addon,
    describe: 'proxied WebSockets and other upgraded connections of one user at a time',
  },
  'addon-bytes-per-second': {
    type: 'bytes',
    min: 1_024,
    max: 2 ** 40,
    default: 4 * 2 ** 20,
    group: addon,
    describe: 'bytes of one user per second in each direction, over all connections together',
  },
  'addon-max-request-age': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 600_000,
    group: addon,
    describe: 'longest time for a proxied request, its answer included',
  },
  'addon-max-tunnel-age': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 3_600_000,
    group: addon,
    describe: 'longest time for a proxied WebSocket or other upgraded connection',
  },
  'addon-idle-timeout': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 900_000,
    group: addon,
    describe: 'longest time in which nothing passes',
  },
  'addon-recheck-period': {
    type: 'duration',
    min: 100,
    max: 3_600_000,
    default: 15_000,
    group: addon,
    describe: 'how often the rights behind an open stream are checked again',
  },
  'addon-allowed-cidr': {
    type: 'cidr',
    repeatable: true,
    group: addon,
    describe:
      'dial targets of the service proxy only in these ranges, for example the Pod and node CIDRs; without it everywhere but at loopback, link-local, multicast, reserved and cloud metadata addresses',
  },
  'addon-allowed-origin': {
    type: 'string',
    repeatable: true,
    check: checkOrigin,
    placeholder: 'ORIGIN',
    group: addon,
    describe:
      'other origin whose pages may use add-ons, besides the pages that the add-on serves itself',
  },
  'addon-same-origin-namespace': {
    type: 'string',
    repeatable: true,
    default: ['kube-system'],
    check: checkNamespace,
    placeholder: 'NAMESPACE',
    group: addon,
    describe:
      "namespace whose Services may run pages on the API's origin, with the rights of their visitors; an empty value permits none",
  },
} as const satisfies OptionTable

const joining = 'Joining'
const hourMs = 3_600_000

/** Options of how nodes and people find this cluster and become part of it. */
export const discoveryOptions = {
  'bootstrap-token': {
    type: 'string',
    secret: true,
    placeholder: 'TOKEN',
    group: joining,
    describe:
      'token by which machines may join, made at the first start; rather by environment or file',
  },
  'bootstrap-token-file': {
    type: 'path',
    placeholder: 'FILE',
    group: joining,
    describe:
      'file with that token, known before there is a cluster; later `token create` makes them',
  },
  'bootstrap-token-ttl': {
    type: 'duration',
    max: 100 * 365 * 24 * hourMs,
    default: 24 * hourMs,
    group: joining,
    describe: 'how long that token is good; 0 is forever',
  },
  'bootstrap-token-failures': {
    type: 'integer',
    min: 0,
    max: 1_000_000,
    default: 60,
    placeholder: 'NUMBER',
    group: joining,
    describe:
      'failures of one address with one bootstrap token id within a minute, after which failures get 429; 0 is no limit',
  },
  'cluster-signing-duration': {
    type: 'duration',
    min: 600_000,
    max: 87_600 * hourMs,
    default: 8_760 * hourMs,
    group: joining,
    describe: 'longest life of a certificate that is signed for a CertificateSigningRequest',
  },
} as const satisfies OptionTable

const users = 'Users of an OIDC provider'

const checkHttps = (text: string): string | undefined =>
  URL.canParse(text) && new URL(text).protocol === 'https:' ? undefined : 'must be an https URL'

const checkPair = (text: string): string | undefined =>
  /^[^=]+=/.test(text) ? undefined : 'must be of the form claim=value'

/** Options for users of an outside provider, with kube-apiserver's names and defaults. */
export const oidcOptions = {
  'oidc-issuer-url': {
    type: 'string',
    check: checkHttps,
    placeholder: 'URL',
    group: users,
    describe: 'provider whose id tokens are accepted; exactly the iss of its tokens',
  },
  'oidc-client-id': {
    type: 'string',
    placeholder: 'ID',
    group: users,
    describe: 'client that all tokens must have been issued for',
  },
  'oidc-username-claim': {
    type: 'string',
    default: 'sub',
    placeholder: 'CLAIM',
    group: users,
    describe: 'claim that is the user name',
  },
  'oidc-username-prefix': {
    type: 'string',
    placeholder: 'TEXT',
    defaultText: 'the issuer URL and #, none if the claim is email',
    group: users,
    describe: 'what stands before every user name; - for nothing',
  },
  'oidc-groups-claim': {
    type: 'string',
    placeholder: 'CLAIM',
    group: users,
    describe: 'claim with the groups, a string or a list of strings',
  },
  'oidc-groups-prefix': {
    type: 'string',
    placeholder: 'TEXT',
    group: users,
    describe: 'what stands before every group, so that none has the name of one of the cluster',
  },
  'oidc-required-claim': {
    type: 'string',
    repeatable: true,
    check: checkPair,
    placeholder: 'CLAIM=VALUE',
    group: users,
    describe: 'claim that a token must have with this value',
  },
  'oidc-signing-algs': {
    type: 'choice',
    choices: ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'],
    repeatable: true,
    default: ['RS256'],
    group: users,
    describe: 'algorithm that tokens may be signed with',
  },
  'oidc-ca-file': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'the public ones',
    group: users,
    describe: 'CA of the provider, PEM',
  },
} as const satisfies OptionTable

const tunnel = 'Tunnel'

/** Options of the tunnel inside the API server. */
export const tunnelOptions = {
  tunnel: {
    type: 'boolean',
    default: false,
    group: tunnel,
    describe: 'serve a port on which tunnel agents connect',
  },
  'tunnel-agent-bind-address': {
    type: 'address',
    defaultText: 'the first of --bind-address, or all addresses',
    group: tunnel,
    describe: 'address on which tunnel agents connect',
  },
  'tunnel-agent-port': {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: 8091,
    placeholder: 'PORT',
    group: tunnel,
    describe: 'port on which tunnel agents connect; 0 takes a free one',
  },
  'tunnel-local-agent': {
    type: 'boolean',
    default: false,
    group: tunnel,
    describe: 'with --tunnel, also run an agent in this process',
  },
  egress: {
    type: 'choice',
    choices: ['direct', 'tunnel'],
    default: 'direct',
    group: tunnel,
    describe: 'how to dial Pods, Services and nodes; tunnel needs --tunnel',
  },
} as const satisfies OptionTable

const limits = 'Limits'

/** How much may be stored. */
export const storageOptions = {
  'max-namespace-objects': {
    type: 'integer',
    min: 0,
    max: 1_000_000_000,
    // Kubernetes' own threshold for the Services of a namespace, and more than that for Pods.
    default: 5_000,
    group: limits,
    describe:
      'objects in one namespace; its annotation sallyport.dev/max-objects takes precedence; 0 is no limit',
  },
  'max-namespace-bytes': {
    type: 'bytes',
    min: 0,
    max: 2 ** 50,
    default: 64 * 2 ** 20,
    group: limits,
    describe:
      'bytes stored in one namespace; its annotation sallyport.dev/max-bytes takes precedence; 0 is no limit',
  },
  'max-store-objects': {
    type: 'integer',
    min: 0,
    max: 1_000_000_000,
    default: 500_000,
    group: limits,
    describe: 'objects in all; administrators and nodes may write 10 % more; 0 is no limit',
  },
  'max-store-bytes': {
    type: 'bytes',
    min: 0,
    max: 2 ** 50,
    // The quota of etcd.
    default: 2 * 2 ** 30,
    group: limits,
    describe: 'bytes stored in all; administrators and nodes may write 10 % more; 0 is no limit',
  },
} as const satisfies OptionTable
