import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('../../../scripts/derive-schema.mjs', import.meta.url))
// The checksum database is left out: go.sum files of the peers have verified what is in the cache.
const offline = { ...process.env, GOPROXY: 'off', GOSUMDB: 'off', GOFLAGS: '-mod=mod' }
const cached = ['k8s.io/api', 'k8s.io/apimachinery'].every(
  (module) =>
    spawnSync('go', ['mod', 'download', `${module}@v0.36.3`], { cwd: '/', env: offline }).status ===
    0,
)
if (!cached) console.log('skipped: freshness of the field tables needs Go and the cached modules')

test.skipIf(!cached)('the tables are what the script derives [GND-R61]', () => {
  const run = spawnSync('node', [script, '--check'], { env: offline, encoding: 'utf8' })
  expect(run.stderr).toBe('')
  expect(run.stdout).toMatch(/^up to date: \d+ kinds/)
})
