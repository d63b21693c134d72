// Layers from low to high: a module imports only modules of lower layers, and only through their public entries.
const layers = [
  ['core'],
  ['jose', 'pki', 'kubeconfig', 'http', 'grpc'],
  ['storage', 'credentials'],
  ['client'],
  ['authn', 'authz', 'api'],
  ['bootstrap', 'issuer', 'addon', 'tunnel', 'workload'],
  ['apiserver', 'local-proxy', 'console'],
  ['cli', 'testing'],
]
const any = (names) => `(${names.join('|')})`
const tests = '\\.(test|suite)\\.ts$'

const downwardOnly = layers.map((layer, index) => ({
  name: `${layer[0]}-layer-imports-down-only`,
  severity: 'error',
  from: { path: `^src/${any(layer)}/`, pathNot: tests },
  to: { path: `^src/${any(layers.slice(index).flat())}/`, pathNot: '^src/$1/' },
}))

module.exports = {
  forbidden: [
    ...downwardOnly,
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'through-public-entries-only',
      severity: 'error',
      from: { path: '^src/([^/]+)/', pathNot: tests },
      to: {
        path: '^src/',
        pathNot: ['^src/$1/', '^src/[^/]+/index\\.ts$', '^src/[^/]+/[^/]+/index\\.ts$'],
      },
    },
    {
      name: 'every-file-belongs-to-a-module',
      severity: 'error',
      from: { path: `^src/(?!${any(layers.flat())}/)` },
      to: {},
    },
    {
      name: 'testing-is-not-for-production',
      severity: 'error',
      from: { path: '^src/(?!testing/)', pathNot: tests },
      to: { path: '^src/testing/' },
    },
    {
      name: 'process-is-for-the-cli',
      comment: 'users of the library expect their plugins to run under their own process',
      severity: 'error',
      from: {
        path: '^src/(?!cli/)',
        pathNot: [tests, '^src/credentials/exec/node-plugin-host\\.ts$'],
      },
      to: { path: '^(node:)?process$' },
    },
    {
      name: 'yaml-is-read-by-core',
      comment:
        'core/yaml reads within limits; the others only write YAML, or edit what was read with it',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: [
          tests,
          '^src/core/yaml\\.ts$',
          '^src/kubeconfig/(edit|write)\\.ts$',
          '^src/api/serving/response\\.ts$',
          '^src/cli/up/packaged-addon\\.ts$',
        ],
      },
      to: { path: '^node_modules/yaml/' },
    },
    {
      name: 'storage-is-for-the-api',
      comment: 'apiserver/ and cli/ merely open, check and back it up',
      severity: 'error',
      from: { path: '^src/(?!storage/|api/|apiserver/|cli/)', pathNot: tests },
      to: { path: '^src/storage/' },
    },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '/generated/.*\\.json$' },
  },
}
