import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Figure, figureOf } from '../credentials/figures.ts'
import type { Order } from '../credentials/report.ts'
import { inTurn } from '../in-turn.ts'
import { findPeer } from '../peers.ts'
import { command } from '../sallyport.ts'
import { invite } from './invitation.ts'

const ours = 'sallyport join'
const discoveryOnly = 'sallyport join --discovery-only'
const kubeadm = "kubeadm's discovery"

/** The server writes its audit log once a second. */
const writtenWithinMs = 1_300

interface Run {
  readonly ms: number
  readonly requests: number
}

/** How many requests the server has written down, once it has written all of them. */
async function audited(dataDirectory: string): Promise<number> {
  const count = async () =>
    (await readFile(join(dataDirectory, 'audit.log'), 'utf8')).split('\n').length
  let last = -1
  for (let now = await count(); now !== last; now = await count()) {
    last = now
    await delay(writtenWithinMs)
  }
  return last
}

async function timed(
  dataDirectory: string,
  program: string,
  args: readonly string[],
): Promise<Run> {
  const before = await audited(dataDirectory)
  const startedAt = performance.now()
  await promisify(execFile)(program, [...args], { timeout: 60_000 })
  const ms = performance.now() - startedAt
  return { ms, requests: (await audited(dataDirectory)) - before }
}

/** From an address and a token to a node's kubeconfig, beside kubeadm, which only finds the cluster and reads its documents. */
export async function measureJoining(
  { server, directory }: { readonly server: string; readonly directory: string },
  order: Order,
): Promise<Figure[]> {
  const data = join(directory, 'data')
  const address = new URL(server).host
  let nodes = 0
  const joining = async (...more: readonly string[]): Promise<Run> => {
    const { token, pin } = await invite(data)
    const name = `bench-${++nodes}`
    const out = ['--out', join(directory, `${name}.kubeconfig`), '--node-name', name]
    const trust = ['--token', token, '--discovery-token-ca-cert-hash', pin]
    const args = [...order.nodeFlags, command, 'join', address, ...trust, ...out, ...more]
    return timed(data, process.execPath, args)
  }
  const peer = findPeer('kubeadm-1.36')
  if ('missing' in peer) console.error(peer.missing)
  const measured = new Map<string, () => Promise<Run>>([
    [ours, () => joining('--cert-dir', join(directory, `node-${nodes}`))],
    [discoveryOnly, () => joining('--discovery-only')],
  ])
  if ('path' in peer)
    measured.set(kubeadm, async () => {
      const { token, pin } = await invite(data)
      const trust = ['--token', token, '--discovery-token-ca-cert-hash', pin]
      const there = ['--node-name', 'bench', '--cri-socket', 'unix:///nowhere.sock']
      const phase = ['join', 'phase', 'preflight', address, '--ignore-preflight-errors=all']
      return timed(data, peer.path, [...phase, ...trust, ...there])
    })
  const results = await inTurn(measured, order.rounds)
  const roundsOf = (of: keyof Run) =>
    Object.fromEntries([...results].map(([who, runs]) => [who, runs.map((run) => run[of])]))
  const about = { better: 'less', aims: [] } as const
  return [
    figureOf({
      ...about,
      name: 'from nothing to a kubeconfig',
      unit: 'ms',
      rounds: roundsOf('ms'),
    }),
    figureOf({
      ...about,
      name: 'from nothing to a kubeconfig',
      unit: 'requests',
      rounds: roundsOf('requests'),
    }),
  ]
}
