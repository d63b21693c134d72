// `npm run check`: every quality check, one after the other, with its time. Stops at the first failure.
import { spawnSync } from 'node:child_process'
import { ensureInstalled, requireNode, root } from './install.mjs'

requireNode()
ensureInstalled()

const steps = [
  'format:check',
  'lint',
  'types',
  'layers',
  'dead',
  'requirements',
  'reference:check',
  'test',
  'pack:check',
]
for (const step of steps) {
  const started = Date.now()
  const quiet = step === 'requirements'
  const run = spawnSync('npm', ['run', '--silent', step], {
    cwd: root,
    stdio: quiet ? ['ignore', 'pipe', 'inherit'] : ['ignore', 'inherit', 'inherit'],
  })
  if (quiet)
    console.log(
      String(run.stdout)
        .trimEnd()
        .split('\n')
        .slice(run.status === 0 ? -1 : -40)
        .join('\n'),
    )
  console.log(
    `${run.status === 0 ? 'ok  ' : 'FAIL'} ${step} (${((Date.now() - started) / 1000).toFixed(1)} s)`,
  )
  if (run.status !== 0) process.exit(1)
}
