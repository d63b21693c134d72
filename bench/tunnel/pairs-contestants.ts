import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findPeer } from '../peers.ts'
import { command } from '../sallyport.ts'
import type { TunnelCertificates } from './pairs-certificates.ts'
import { agentFlags, serverFlags } from './pairs-flags.ts'
import { freePorts } from './pairs-ports.ts'

/** Everyone who is measured: our pair, upstream's as it comes and without its logging, and others. */
export const names = ['ours', 'go', 'goQuiet', 'chisel', 'tcpRelay', 'tlsRelay'] as const

/** One of them. */
export type Name = (typeof names)[number]

/** How tables call them. */
export const titles: Readonly<Record<Name, string>> = {
  ours: 'ours',
  go: 'Konnectivity',
  goQuiet: 'its v=0',
  chisel: 'chisel',
  tcpRelay: 'TCP relay',
  tlsRelay: 'TLS relay',
}

/** Two running processes with a target behind them. */
export interface Contestant {
  readonly name: Name
  /** Flags of `tunnel-load` that lead to its front end. */
  readonly front: readonly string[]
  readonly pids: readonly number[]
  stop(): Promise<void>
}

/** Where a contestant is started. */
export interface Ground {
  readonly directory: string
  readonly certificates: TunnelCertificates
  /** host:port of a `tunnel-load target`. */
  readonly target: string
}

type Programs = readonly (readonly [program: string, args: readonly string[]])[]

/** Starts both ends; what they say goes to a file, or nowhere if they say too much. */
function startAll(
  name: Name,
  { directory }: Ground,
  programs: Programs,
): Omit<Contestant, 'front'> {
  mkdirSync(directory, { recursive: true })
  const children = programs.map(([program, args], at): ChildProcess => {
    const log = name === 'go' ? 'ignore' : openSync(join(directory, `${name}-${at}.log`), 'a')
    return spawn(program, args, { stdio: ['ignore', log, log] })
  })
  return {
    name,
    pids: children.flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
    async stop() {
      await Promise.all(
        children.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return
          child.kill('SIGKILL')
          await once(child, 'exit')
        }),
      )
    },
  }
}

function requirePath(name: string): string {
  const peer = findPeer(name)
  if ('missing' in peer) throw new Error(peer.missing)
  return peer.path
}

/** A pair with Konnectivity's flags, over mutual TLS, with HTTP CONNECT on a UNIX socket. */
async function startPair(name: 'ours' | 'go' | 'goQuiet', ground: Ground): Promise<Contestant> {
  const [agentPort = 0, healthPort = 0, adminPort = 0, agentHealth = 0, agentAdmin = 0] =
    await freePorts(5)
  const uds = join(ground.directory, `${name}.sock`)
  const place = { mode: 'http-connect', front: { uds }, agentPort, healthPort, adminPort } as const
  const far = { host: '127.0.0.1', port: agentPort, healthPort: agentHealth, adminPort: agentAdmin }
  const quiet = name === 'goQuiet' ? ['--v=0'] : []
  const server = [...serverFlags(ground.certificates, place), ...quiet]
  const agent = [...agentFlags(ground.certificates, far), ...quiet]
  const programs: Programs =
    name === 'ours'
      ? [
          [process.execPath, [command, 'tunnel', 'server', ...server]],
          [process.execPath, [command, 'tunnel', 'agent', ...agent]],
        ]
      : [
          [requirePath('konnectivity-server-0.36'), server],
          [requirePath('konnectivity-agent-0.36'), agent],
        ]
  const front = ['--front', 'http-connect', '--uds', uds, '--target', ground.target]
  return { ...startAll(name, ground, programs), front }
}

/** A chisel server and a client that opens a port on it. */
async function startChisel(ground: Ground): Promise<Contestant> {
  const [serverPort = 0, frontPort = 0] = await freePorts(2)
  const { cluster, clusterCa, agent } = ground.certificates
  const chisel = requirePath('chisel-1.11')
  const serverTls = ['--tls-key', cluster.key, '--tls-cert', cluster.cert, '--tls-ca', clusterCa]
  const clientTls = ['--tls-key', agent.key, '--tls-cert', agent.cert, '--tls-ca', clusterCa]
  const listening = ['--reverse', '--host', '127.0.0.1', '--port', String(serverPort)]
  const remote = `R:127.0.0.1:${frontPort}:${ground.target}`
  const programs: Programs = [
    [chisel, ['server', ...listening, ...serverTls]],
    [chisel, ['client', ...clientTls, `https://127.0.0.1:${serverPort}`, remote]],
  ]
  const front = ['--front', 'tcp', '--address', `127.0.0.1:${frontPort}`]
  return { ...startAll('chisel', ground, programs), front }
}

/** The relay of `pairs-relay.ts`. */
async function startRelay(name: 'tcpRelay' | 'tlsRelay', ground: Ground): Promise<Contestant> {
  const [frontPort = 0, betweenPort = 0] = await freePorts(2)
  const { cluster, clusterCa, agent } = ground.certificates
  const program = fileURLToPath(new URL('pairs-relay.js', import.meta.url))
  const kind = name === 'tlsRelay' ? 'tls' : 'tcp'
  const targetPort = ground.target.split(':')[1] ?? ''
  const near = ['near', kind, String(frontPort), String(betweenPort)]
  const far = ['far', kind, String(betweenPort), targetPort]
  const programs: Programs = [
    [process.execPath, [program, ...near, clusterCa, agent.cert, agent.key]],
    [process.execPath, [program, ...far, clusterCa, cluster.cert, cluster.key]],
  ]
  const front = ['--front', 'tcp', '--address', `127.0.0.1:${frontPort}`]
  return { ...startAll(name, ground, programs), front }
}

/** Starts one of them. */
export function startContestant(name: Name, ground: Ground): Promise<Contestant> {
  if (name === 'chisel') return startChisel(ground)
  if (name === 'tcpRelay' || name === 'tlsRelay') return startRelay(name, ground)
  return startPair(name, ground)
}
