import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
let clone: string

beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), 'sallyport-clone-'))
  for (const part of [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'scripts',
    'src',
  ])
    cpSync(join(root, part), join(clone, part), { recursive: true })
})
afterEach(() => rmSync(clone, { recursive: true, force: true }))

/** An `npm` that notes how it was called and "installs" by linking to the packages that are here. */
function fakeNpm(): { readonly path: string; readonly calls: () => string } {
  const directory = join(clone, 'bin')
  const log = join(clone, 'npm-calls')
  mkdirSync(directory)
  const script = `#!/bin/sh\necho "$@" >> '${log}'\nln -s '${join(root, 'node_modules')}' '${join(clone, 'node_modules')}'\ntouch '${join(root, 'node_modules', '.package-lock.json')}'\n`
  writeFileSync(join(directory, 'npm'), script, { mode: 0o755 })
  return {
    path: `${directory}${delimiter}${process.env['PATH']}`,
    calls: () => (existsSync(log) ? readFileSync(log, 'utf8') : ''),
  }
}

async function startOnce(
  path: string,
): Promise<{ readonly line: string; readonly stderr: string }> {
  const child = spawn(
    process.execPath,
    [
      'scripts/start.mjs',
      'up',
      '--output',
      'json',
      '--secure-port',
      '0',
      '--data-dir',
      join(clone, 'data'),
    ],
    { cwd: clone, env: { ...process.env, PATH: path }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk)
  })
  const ended = once(child, 'exit')
  const line = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line').then(([text]) => String(text)),
    ended.then(() => ''),
  ])
  child.kill('SIGTERM')
  await ended
  return { line, stderr }
}

test('npm start installs what is missing, builds what is stale and serves; the next one just serves [GND-R1]', async () => {
  const npm = fakeNpm()
  const first = await startOnce(npm.path)
  expect(npm.calls()).toContain('install --no-save')
  expect(first.stderr).toContain('Building')
  expect(JSON.parse(first.line)).toMatchObject({ server: expect.stringMatching(/^https:/) })
  const second = await startOnce(npm.path)
  expect(npm.calls().trim().split('\n')).toHaveLength(1)
  expect(second.stderr).not.toContain('Building')
  expect(second.stderr).toContain('every `sallyport ...` is `npm run sallyport -- ...`')
  expect(JSON.parse(second.line)).toMatchObject({ server: expect.stringMatching(/^https:/) })
}, 60_000)
