import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildOnce } from '../build-once.ts'
import { runInProcess } from './in-process-command.ts'

/** Why processes cannot get a mount namespace here; empty if they can. */
export function whyNoMountNamespace(): string {
  if (process.platform !== 'linux') return 'there are no mount namespaces here'
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-current-user', '--keep-caps']
  const { status, stderr } = spawnSync('unshare', [...user, '--mount', 'true'])
  return status === 0 ? '' : `no mount namespace: ${String(stderr)}`
}

/** A `sallyport workload run` of the present sources. */
export class RunningWorkload {
  readonly process: ChildProcess
  readonly ended: Promise<number | null>
  stdout = ''
  stderr = ''

  constructor(child: ChildProcess) {
    this.process = child
    child.stdout?.on('data', (chunk) => {
      this.stdout += String(chunk)
    })
    child.stderr?.on('data', (chunk) => {
      this.stderr += String(chunk)
    })
    this.ended = once(child, 'close').then(([code]) => code as number | null)
  }

  /** Resolves once what it has printed matches. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.stdout)
      if (found) return found
      await Promise.race([
        once(this.process.stdout!, 'data'),
        this.ended.then((code) => {
          throw new Error(`ended with ${code}: ${this.stderr}`)
        }),
      ])
    }
  }
}

/** Runs workloads of one machine, each with a private place of its own. */
export class WorkloadRunner {
  readonly kubeconfig: string
  readonly #places: string[] = []
  readonly #running: RunningWorkload[] = []

  constructor(kubeconfig: string) {
    this.kubeconfig = kubeconfig
  }

  async start(
    words: readonly string[],
    options: { readonly uid?: number; readonly runtimeDirectory?: string } = {},
  ): Promise<RunningWorkload> {
    const place = options.runtimeDirectory ?? (await this.#place())
    const { uid } = options
    const main = join(await buildOnce(), 'cli', 'main.js')
    const args = [main, 'workload', 'run', '--kubeconfig', this.kubeconfig, ...words]
    const { KUBECONFIG: _, ...env } = process.env
    const child = spawn(process.execPath, args, {
      env: { ...env, XDG_RUNTIME_DIR: place, ...(uid !== undefined && { HOME: '/nonexistent' }) },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(uid !== undefined && { uid, gid: uid }),
    })
    const running = new RunningWorkload(child)
    this.#running.push(running)
    return running
  }

  /** Runs one to its end. */
  async run(words: readonly string[], options: { readonly uid?: number } = {}) {
    const running = await this.start(words, options)
    const code = await running.ended
    return { code, stdout: running.stdout, stderr: running.stderr }
  }

  async close(): Promise<void> {
    for (const { process: child, ended } of this.#running) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await ended
    }
    for (const place of this.#places) await rm(place, { recursive: true, force: true })
  }

  async #place(): Promise<string> {
    const path = await mkdtemp(join(tmpdir(), 'workload-place-'))
    await chmod(path, 0o1777)
    this.#places.push(path)
    return path
  }
}

/** Makes the identity of a machine with `user create`; returns its kubeconfig. */
export async function createMachine(
  place: { readonly server: { readonly dataDirectory: string }; readonly directory: string },
  name: string,
  ...more: string[]
): Promise<string> {
  const file = join(place.directory, `${name}.kubeconfig`)
  const words = ['user', 'create', name, '--machine', '--out', file, ...more]
  const made = await runInProcess([...words, '--data-dir', place.server.dataDirectory])
  if (made.code !== 0) throw new Error(made.stderr)
  return file
}
