// `npm test`: installs what is missing, runs the default suite and closes with its counts.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureBuilt } from './build.mjs'
import { ensureInstalled, requireNode, root } from './install.mjs'

requireNode()
ensureInstalled()
ensureBuilt()

const [config = 'vitest.config.ts', ...rest] = process.argv.slice(2)
const scratch = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
const report = join(scratch, 'report.json')
const run = spawnSync(
  process.execPath,
  [
    join(root, 'node_modules', 'vitest', 'vitest.mjs'),
    'run',
    '--config',
    config,
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...rest,
  ],
  { cwd: root, stdio: 'inherit' },
)

const results = JSON.parse(readFileSync(report, 'utf8'))
rmSync(scratch, { recursive: true, force: true })
const skipped = results.testResults
  .flatMap((file) => file.assertionResults)
  .filter((test) => test.status === 'pending' || test.status === 'skipped')
if (skipped.length > 0) {
  console.log('\nSkipped:')
  for (const test of skipped) console.log(`  - ${test.fullName}`)
}
// In CI every program is there, so a skip means that something was not tested.
const mustNotSkip = process.env['SALLYPORT_NO_SKIPS'] === '1' && skipped.length > 0
if (mustNotSkip) console.log('\nSkipping is not allowed here (SALLYPORT_NO_SKIPS=1).')
console.log(
  `\n${results.numPassedTests} passed, ${results.numFailedTests} failed, ${skipped.length} skipped`,
)
process.exit(run.status === 0 && mustNotSkip ? 1 : (run.status ?? 1))
