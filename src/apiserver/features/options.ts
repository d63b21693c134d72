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

/** Options of the service proxy and of the tokens by which it identifies users to add-ons. */
export const addonOptions = {
  'addon-token-key': {
    type: 'choice',
    choices: ['serving', 'dedicated'],
    default: 'serving',
    group: addon,
    describe: 'key that signs add-on tokens: the serving key, or a dedicated key that is published',
  },
  'addon-requests-per-second': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100,
    group: addon,
    describe: 'maximum rate of proxied requests of one user, per second',
  },
  'addon-request-burst': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 400,
    group: addon,
    describe: 'burst of proxied requests of one user above that rate',
  },
  'addon-max-requests': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100,
    group: addon,
    describe: 'maximum number of concurrent proxied requests of one user',
  },
  'addon-max-tunnels': {
    type: 'integer',
    min: 1,
    max: 1_000_000,
    default: 100,
    group: addon,
    describe: 'maximum number of proxied WebSockets and other upgraded connections of one user',
  },
  'addon-bytes-per-second': {
    type: 'bytes',
    min: 1_024,
    max: 2 ** 40,
    default: 4 * 2 ** 20,
    group: addon,
    describe:
      'maximum bytes per second of one user in each direction, over all connections together',
  },
  'addon-max-request-age': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 600_000,
    group: addon,
    describe: 'maximum duration of a proxied request and its response',
  },
  'addon-max-tunnel-age': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 3_600_000,
    group: addon,
    describe: 'maximum duration of a proxied WebSocket or other upgraded connection',
  },
  'addon-idle-timeout': {
    type: 'duration',
    min: 100,
    max: longestTimerMs,
    default: 900_000,
    group: addon,
    describe: 'close proxied connections without traffic after this time',
  },
  'addon-recheck-period': {
    type: 'duration',
    min: 100,
    max: 3_600_000,
    default: 15_000,
    group: addon,
    describe: 'interval at which the permissions of an open stream are checked again',
  },
  'addon-allowed-cidr': {
    type: 'cidr',
    repeatable: true,
    group: addon,
    describe:
      'permitted range of targets of the service proxy, for example the Pod and node CIDRs; without it all but loopback, link-local, multicast, reserved and cloud metadata addresses',
  },
  'addon-allowed-origin': {
    type: 'string',
    repeatable: true,
    check: checkOrigin,
    placeholder: 'ORIGIN',
    group: addon,
    describe:
      'other origin whose pages may use add-ons, in addition to the pages of the add-on itself',
  },
  'addon-same-origin-namespace': {
    type: 'string',
    repeatable: true,
    default: ['kube-system'],
    check: checkNamespace,
    placeholder: 'NAMESPACE',
    group: addon,
    describe:
      "namespace whose Services may run pages on the API's origin, with the permissions of their visitors; an empty value permits none",
  },
} as const satisfies OptionTable

const joining = 'Joining'
const hourMs = 3_600_000

/** Options of discovery and TLS bootstrap. */
export const bootstrapOptions = {
  'bootstrap-token': {
    type: 'string',
    secret: true,
    placeholder: 'TOKEN',
    group: joining,
    describe: 'bootstrap token to create at the first start; preferably by environment or file',
  },
  'bootstrap-token-file': {
    type: 'path',
    placeholder: 'FILE',
    group: joining,
    describe: 'file with that token; later tokens are created with `token create`',
  },
  'bootstrap-token-ttl': {
    type: 'duration',
    max: 100 * 365 * 24 * hourMs,
    default: 24 * hourMs,
    group: joining,
    describe: 'lifetime of that token; 0 is unlimited',
  },
  'bootstrap-token-failures': {
    type: 'integer',
    min: 0,
    max: 1_000_000,
    default: 60,
    placeholder: 'NUMBER',
    group: joining,
    describe:
      'failures of one address with one bootstrap token id per minute, above which failures return 429; 0 is no limit',
  },
  'cluster-signing-duration': {
    type: 'duration',
    min: 600_000,
    max: 87_600 * hourMs,
    default: 8_760 * hourMs,
    group: joining,
    describe: 'maximum lifetime of certificates that are signed for a CertificateSigningRequest',
  },
} as const satisfies OptionTable

const users = 'Users of an OIDC provider'

const checkHttps = (text: string): string | undefined =>
  URL.canParse(text) && new URL(text).protocol === 'https:' ? undefined : 'must be an https URL'

const checkPair = (text: string): string | undefined =>
  /^[^=]+=/.test(text) ? undefined : 'must be of the form claim=value'

/** Options for users of an external OIDC provider, with kube-apiserver's names and defaults. */
export const oidcOptions = {
  'oidc-issuer-url': {
    type: 'string',
    check: checkHttps,
    placeholder: 'URL',
    group: users,
    describe: 'issuer of accepted ID tokens, exactly as in their iss claim',
  },
  'oidc-client-id': {
    type: 'string',
    placeholder: 'ID',
    group: users,
    describe: 'client ID that all tokens must be issued for',
  },
  'oidc-username-claim': {
    type: 'string',
    default: 'sub',
    placeholder: 'CLAIM',
    group: users,
    describe: 'claim with the user name',
  },
  'oidc-username-prefix': {
    type: 'string',
    placeholder: 'TEXT',
    defaultText: 'the issuer URL and #, none if the claim is email',
    group: users,
    describe: 'prefix of user names; - for none',
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
    describe: 'prefix of groups, so that none has the name of a group of the cluster',
  },
  'oidc-required-claim': {
    type: 'string',
    repeatable: true,
    check: checkPair,
    placeholder: 'CLAIM=VALUE',
    group: users,
    describe: 'claim and value that a token must have',
  },
  'oidc-signing-algs': {
    type: 'choice',
    choices: ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'],
    repeatable: true,
    default: ['RS256'],
    group: users,
    describe: 'accepted signing algorithm',
  },
  'oidc-ca-file': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'the public CAs of Node.js',
    group: users,
    describe: 'CA of the provider, PEM',
  },
} as const satisfies OptionTable

const serviceAccounts = 'Service accounts'

/** Options of the tokens of service accounts. */
export const issuerOptions = {
  'service-account-issuer': {
    type: 'string',
    repeatable: true,
    placeholder: 'URL',
    defaultText: 'https://HOST:PORT of the first start, stored in the cluster',
    group: serviceAccounts,
    describe: 'issuer of tokens: the first one is used for new tokens, all are accepted',
  },
  'service-account-jwks-uri': {
    type: 'string',
    placeholder: 'URL',
    defaultText: '/openid/v1/jwks at the external address',
    group: serviceAccounts,
    describe: 'URL of the key set for relying parties, if not at this server',
  },
  'service-account-signing-key-file': {
    type: 'path',
    placeholder: 'FILE',
    defaultText: 'a key ring in the cluster, which can be rotated',
    group: serviceAccounts,
    describe: 'private key that signs tokens, PEM',
  },
  'service-account-key-file': {
    type: 'path',
    repeatable: true,
    placeholder: 'FILE',
    group: serviceAccounts,
    describe: 'additional key whose tokens are accepted, PEM, public or private',
  },
  'api-audiences': {
    type: 'string',
    repeatable: true,
    placeholder: 'AUDIENCE',
    defaultText: 'the issuers',
    group: serviceAccounts,
    describe: 'audience that tokens for the API must have',
  },
  'service-account-max-token-expiration': {
    type: 'duration',
    min: 0,
    default: 0,
    group: serviceAccounts,
    describe: 'maximum lifetime of a requested token, an hour or more; 0 is no limit',
  },
  'service-account-extend-token-expiration': {
    type: 'boolean',
    default: true,
    group: serviceAccounts,
    describe: 'extend the default tokens of Pods to a year, for clients that do not reload them',
  },
  'service-account-key-rotation-period': {
    type: 'duration',
    min: 0,
    default: 0,
    group: serviceAccounts,
    describe: 'rotate the signing key after this time, a day or more; 0 disables it',
  },
  'service-account-issuer-public': {
    type: 'boolean',
    default: false,
    group: serviceAccounts,
    describe: 'serve the discovery document and the key set without a credential',
  },
  'service-account-issuer-placeholders': {
    type: 'boolean',
    default: false,
    group: serviceAccounts,
    describe: 'add placeholder endpoints to the discovery document, for parsers that require them',
  },
} as const satisfies OptionTable

const tunnel = 'Tunnel'

/** Options of the tunnel inside the API server. */
export const tunnelOptions = {
  tunnel: {
    type: 'boolean',
    default: false,
    group: tunnel,
    describe: 'open a port for tunnel agents',
  },
  'tunnel-agent-bind-address': {
    type: 'address',
    defaultText: 'the first of --bind-address, or all addresses',
    group: tunnel,
    describe: 'address of the port for tunnel agents',
  },
  'tunnel-agent-port': {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: 8091,
    placeholder: 'PORT',
    group: tunnel,
    describe: 'port for tunnel agents; 0 selects a free port',
  },
  'tunnel-local-agent': {
    type: 'boolean',
    default: false,
    group: tunnel,
    describe: 'run a tunnel agent in this process; needs --tunnel',
  },
  egress: {
    type: 'choice',
    choices: ['direct', 'tunnel'],
    default: 'direct',
    group: tunnel,
    describe: 'how to reach Pods, Services and nodes; tunnel needs --tunnel',
  },
} as const satisfies OptionTable
