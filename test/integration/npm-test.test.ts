import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { findPeer, findProgram } from '../support/peers.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
let scratch: string

beforeEach(() => {
  scratch = mkdtempSync(join(root, 'node_modules', '.sallyport-test-'))
})
afterEach(() => rmSync(scratch, { recursive: true, force: true }))

/** Runs the test command of the README on one made-up test file. */
function runTests(source: string, env: NodeJS.ProcessEnv = {}) {
  writeFileSync(
    join(scratch, 'made-up.test.mjs'),
    `import { expect, test } from 'vitest'\n${source}`,
  )
  const config = join(scratch, 'vitest.config.mjs')
  writeFileSync(
    config,
    `export default { test: { include: ['${scratch}/*.test.mjs'], exclude: [] } }\n`,
  )
  return spawnSync(process.execPath, ['scripts/test.mjs', config], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, SALLYPORT_NO_SKIPS: '', ...env },
  })
}

const oneOfEach = `
test('good', () => { expect(1).toBe(1) })
test.skipIf(true)('left out', () => { expect(1).toBe(1) })
`

test('the run closes with its counts and names what it skipped [GND-R6]', () => {
  const { status, stdout } = runTests(oneOfEach)
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('1 passed, 0 failed, 1 skipped')
  expect(stdout).toContain('  - left out')
  expect(status).toBe(0)
})

test('a failing test fails the run [GND-R6]', () => {
  const { status, stdout } = runTests("test('bad', () => { expect(1).toBe(2) })")
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('0 passed, 1 failed, 0 skipped')
  expect(status).toBe(1)
})

test('where every program must be there, a skip fails the run [GND-R6]', () => {
  expect(runTests(oneOfEach, { SALLYPORT_NO_SKIPS: '1' }).status).toBe(1)
})

test('an absent program is a reason, not a failure [GND-R6]', () => {
  expect(findProgram('no-such-program-anywhere')).toEqual({
    missing: 'no-such-program-anywhere is not installed',
  })
  expect(findPeer('no-such-peer')).toMatchObject({ missing: expect.stringMatching(/no-such-peer/) })
})
