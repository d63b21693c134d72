// Rows from low to high: a room imports only rooms of lower rows, and only through their faces.
const rows = [
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

const downwardOnly = rows.map((row, index) => ({
  name: `${row[0]}-row-imports-down-only`,
  severity: 'error',
  from: { path: `^src/${any(row)}/`, pathNot: tests },
  to: { path: `^src/${any(rows.slice(index).flat())}/`, pathNot: '^src/$1/' },
}))

module.exports = {
  forbidden: [
    ...downwardOnly,
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'through-a-face-only',
      severity: 'error',
      from: { path: '^src/([^/]+)/', pathNot: tests },
      to: {
        path: '^src/',
        pathNot: ['^src/$1/', '^src/[^/]+/index\\.ts$', '^src/[^/]+/[^/]+/index\\.ts$'],
      },
    },
    {
      name: 'every-file-has-a-known-room',
      severity: 'error',
      from: { path: `^src/(?!${any(rows.flat())}/)` },
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
