import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../bench/free-port.ts'
import { findPeer, findProgram, pathOrReason } from './peers.ts'

const program = fileURLToPath(new URL('../../interop/peers/run-kube-apiserver', import.meta.url))

/** Whether a kube-apiserver can be run here; says what is missing if not. */
export const hasKubeApiserver = (): boolean =>
  [findPeer('kube-apiserver-1.36'), findPeer('etcd-3.6'), findProgram('openssl')].every(
    (peer) => pathOrReason(peer) !== undefined,
  )

/** A real kube-apiserver with an etcd of its own, on loopback. */
export interface KubeApiserverProcess {
  readonly directory: string
  /** `https://127.0.0.1:PORT`. */
  readonly address: string
  readonly caPem: string
  /** A token of `system:masters`; our server knows it by `tokensFile`. */
  readonly adminToken: string
  readonly tokensFile: string
  readonly kubeconfig: string
  stop(): Promise<void>
}

/** Starts it with further flags and waits until it is ready. */
export async function startKubeApiserver(flags: readonly string[]): Promise<KubeApiserverProcess> {
  const directory = await mkdtemp(join(tmpdir(), 'kube-apiserver-'))
  const port = await freePort(3) // etcd takes two
  const places = ['--dir', directory, '--port', `${port}`, '--etcd-port', `${port + 1}`]
  const child = spawn(program, [...places, '--', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(createInterface({ input: child.stdout }), 'line')
  const tokensFile = join(directory, 'tokens.csv')
  const [adminToken = ''] = (await readFile(tokensFile, 'utf8')).split(',')
  return {
    directory,
    address: `https://127.0.0.1:${port}`,
    caPem: await readFile(join(directory, 'pki', 'ca.crt'), 'utf8'),
    adminToken,
    tokensFile,
    kubeconfig: join(directory, 'admin.kubeconfig'),
    stop: async () => {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      await rm(directory, { recursive: true, force: true })
    },
  }
}
