import { execFileSync } from 'node:child_process'
import { inRoot } from './root.ts'

/** A real program to measure with or against: its path, or why it is not here. */
export type Peer = { readonly path: string } | { readonly missing: string }

/** Looks up a peer that `interop/peers/build` makes. */
export function findPeer(name: string): Peer {
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
