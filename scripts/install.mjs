// Installs the dependencies when they are missing or older than the lock file. Needs nothing but Node.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))

const modified = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0)

/** Stops with a clear sentence on a Node that is too old to run anything here. */
export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return
  console.error(`Sallyport needs Node.js 20.19 or newer; this is ${process.versions.node}.`)
  process.exit(1)
}

/**
 * Installs by the lock file when node_modules is missing or stale. Not by `npm ci`: it refuses a lock file
 * that does not name the optional packages of every platform, and not every registry has them all.
 */
export function ensureInstalled() {
  const installed = modified(join(root, 'node_modules', '.package-lock.json'))
  if (installed >= modified(join(root, 'package-lock.json')) && installed > 0) return
  console.error('Installing dependencies ...')
  const npm = spawnSync(
    'npm',
    ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'],
    {
      cwd: root,
      stdio: ['ignore', 2, 2],
    },
  )
  if (npm.status === 0) return
  console.error('npm install failed; its messages above say why. Is the npm registry reachable?')
  process.exit(1)
}
