import { execFileSync } from 'node:child_process'
import { inRoot } from './root.ts'

/** A real program to measure with or against: its path, or why it is not here. */
export type Peer = { readonly path: string } | { readonly missing: string }

/** A peer's path has the hash of its sources, which may change while something long runs. */
const found = new Map<string, Peer>()

/** Looks up a peer that `interop/peers/build` makes. */
export function findPeer(name: string): Peer {
  const known = found.get(name)
  if (known) return known
  const peer = lookUp(name)
  if ('path' in peer) found.set(name, peer)
  return peer
}

function lookUp(name: string): Peer {
  try {
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    const path = execFileSync(inRoot('interop/peers/path'), [name], {
      encoding: 'utf8',
      stdio: [...stdio],
    })
    return { path: path.trim() }
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    return { missing: stderr || `${name} is not built: run interop/peers/build ${name}` }
  }
}

/** The path of a peer without which nothing can be done. */
export function requirePeer(name: string): string {
  const peer = findPeer(name)
  if ('missing' in peer) throw new Error(peer.missing)
  return peer.path
}
