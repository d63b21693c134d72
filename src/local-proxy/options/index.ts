import { defineOptions, logLevels } from '../../core/index.ts'

/** kubectl's values, and port forwarding is rejected like its two siblings. */
export const filterDefaults = {
  acceptHosts: String.raw`^localhost$,^127\.0\.0\.1$,^\[::1\]$`,
  acceptPaths: '^.*',
  rejectPaths: '^/api/.*/pods/.*/exec,^/api/.*/pods/.*/attach,^/api/.*/pods/.*/portforward',
  rejectMethods: '^$',
} as const

/** The options of the local proxy: kubectl's flags and defaults, and which cluster is meant. */
export const proxyOptions = defineOptions({
  port: {
    type: 'integer',
    max: 65_535,
    default: 8001,
    short: 'p',
    describe: 'port to listen on; 0 takes a free one',
    group: 'Serving',
    placeholder: 'PORT',
  },
  address: {
    type: 'address',
    default: '127.0.0.1',
    describe: 'address to listen on; whoever reaches another one than loopback acts as you',
    group: 'Serving',
    placeholder: 'IP',
  },
  'unix-socket': {
    type: 'path',
    short: 'u',
    describe: 'unix socket to listen on in place of a port; only its owner may use it',
    group: 'Serving',
    placeholder: 'PATH',
  },
  'api-prefix': {
    type: 'string',
    default: '/',
    describe: 'path under which the API is served; one that begins with /api is left on the path',
    group: 'Serving',
    placeholder: 'PREFIX',
  },
  www: {
    type: 'path',
    short: 'w',
    describe: 'directory of files to serve as well',
    group: 'Serving',
    placeholder: 'DIR',
  },
  'www-prefix': {
    type: 'string',
    short: 'P',
    default: '/static/',
    describe: 'path under which the files of --www are served',
    group: 'Serving',
    placeholder: 'PREFIX',
  },
  'accept-hosts': {
    type: 'string',
    default: filterDefaults.acceptHosts,
    describe: 'patterns of Host headers to accept (where a request goes, not where it comes from)',
    group: 'Filter',
    placeholder: 'REGEXPS',
  },
  'accept-paths': {
    type: 'string',
    default: filterDefaults.acceptPaths,
    describe: 'patterns of paths to accept',
    group: 'Filter',
    placeholder: 'REGEXPS',
  },
  'reject-paths': {
    type: 'string',
    default: filterDefaults.rejectPaths,
    describe: 'patterns of paths to reject, also if they are accepted',
    group: 'Filter',
    placeholder: 'REGEXPS',
  },
  'reject-methods': {
    type: 'string',
    default: filterDefaults.rejectMethods,
    describe: 'patterns of methods to reject, for example POST,PUT,PATCH,DELETE',
    group: 'Filter',
    placeholder: 'REGEXPS',
  },
  'disable-filter': {
    type: 'boolean',
    default: false,
    describe: 'let every request through, also those of foreign web pages; dangerous',
    group: 'Filter',
  },
  kubeconfig: {
    type: 'path',
    describe: 'file that says where the cluster is and who you are',
    group: 'Cluster',
    placeholder: 'FILE',
    defaultText: 'the files of KUBECONFIG, or ~/.kube/config',
  },
  context: {
    type: 'string',
    describe: 'context of the kubeconfig to use',
    group: 'Cluster',
    placeholder: 'NAME',
    defaultText: 'the current one',
  },
  'append-server-path': {
    type: 'boolean',
    default: false,
    describe: "put the path of the kubeconfig's server address before every path",
    group: 'Cluster',
  },
  'allow-request-header': {
    type: 'string',
    repeatable: true,
    placeholder: 'NAME',
    describe:
      'pass on this header although its name looks like a claim to an identity, as X-Auth-Token does',
    group: 'Cluster',
  },
  keepalive: {
    type: 'duration',
    default: 0,
    describe: 'TCP keep-alive period of upgraded connections; 0 stands for 15s',
    group: 'Cluster',
  },
  'log-level': {
    type: 'choice',
    choices: logLevels,
    default: 'warn',
    describe: 'what to tell on standard error; debug shows every request',
    group: 'Output',
  },
})
