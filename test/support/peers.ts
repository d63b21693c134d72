import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A real program to test against: its path, or why it is not here. */
export type Peer = { readonly path: string } | { readonly missing: string }

/** Looks up a peer that `interop/peers/build` makes. */
export function findPeer(name: string): Peer {
  try {
    const path = execFileSync(`${root}interop/peers/path`, [name], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    return { path: path.trim() }
  } catch (error) {
    const stderr = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : ''
    return { missing: stderr || `${name} is not built; run interop/peers/build ${name}` }
  }
}

/** Looks up a kubectl of a version: one of ours, or one that the machine carries. */
export function findKubectl(version: string): Peer {
  const built = findPeer(`kubectl-${version}`)
  if ('path' in built) return built
  const carried = findProgram(`kubectl.${version}`)
  return 'path' in carried ? carried : built
}

/** Looks up an ordinary program of the machine. */
export function findProgram(name: string): Peer {
  try {
    const path = execFileSync('sh', ['-c', 'command -v "$0"', name], {
      encoding: 'utf8',
      env: { ...process.env, PATH: `${process.env['PATH']}:/usr/lib/google-cloud-sdk/bin` },
    })
    return { path: path.trim() }
  } catch {
    return { missing: `${name} is not installed` }
  }
}

/** The peer's path; prints the reason and returns undefined when it is absent, for `test.skipIf`. */
export function pathOrReason(peer: Peer): string | undefined {
  if ('path' in peer) return peer.path
  console.warn(`skipped: ${peer.missing}`)
  return undefined
}
