// Compiles src/ to dist/ when a source is newer than the last build.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './install.mjs'

const stamp = join(root, 'dist', '.built')

function newestIn(directory) {
  let newest = 0
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue
    newest = Math.max(newest, statSync(join(entry.parentPath ?? entry.path, entry.name)).mtimeMs)
  }
  return newest
}

/** Builds if needed; exits with the compiler's messages when it fails. */
export function ensureBuilt() {
  const sources = Math.max(
    newestIn(join(root, 'src')),
    statSync(join(root, 'tsconfig.json')).mtimeMs,
    statSync(join(root, 'tsconfig.build.json')).mtimeMs,
  )
  if (existsSync(stamp) && statSync(stamp).mtimeMs >= sources) return
  console.error('Building ...')
  const compiler = join(root, 'node_modules', 'typescript7', 'bin', 'tsc')
  const tsc = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.build.json'], {
    cwd: root,
    // Standard output belongs to the result of the command that is about to run.
    stdio: ['ignore', 2, 2],
  })
  if (tsc.status !== 0) process.exit(1)
  writeFileSync(stamp, '')
}
