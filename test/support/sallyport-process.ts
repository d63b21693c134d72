import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buildOnce } from '../build-once.ts'

/** What `sallyport up --output json` says once it serves. */
interface Serving {
  readonly server: string
  readonly kubeconfig: string
  /** Where tunnel agents connect, unless there is no tunnel. */
  readonly tunnel?: string
  readonly dataDirectory: string
}

/** A running `sallyport up` of the present sources. */
export interface SallyportProcess extends Serving {
  readonly process: ChildProcess
  /** Everything it wrote to stderr so far. */
  stderr(): string
  /** Ends it in good order and removes its data directory if this helper made it; returns the exit code. */
  stop(): Promise<number | null>
}

/** Runs `sallyport` with arguments; resolves when it has ended. */
export async function runSallyport(
  args: readonly string[],
  options: {
    readonly env?: NodeJS.ProcessEnv
    readonly input?: string
    readonly cwd?: string
    readonly uid?: number
    readonly gid?: number
    /** Sees all that was printed so far, whenever there is more. */
    readonly onStdout?: (text: string, child: ChildProcess) => void
  } = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const dist = await buildOnce()
  const child = spawn(process.execPath, [join(dist, 'cli', 'main.js'), ...args], {
    env: { ...process.env, ...options.env },
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    ...(options.uid !== undefined && { uid: options.uid, gid: options.gid }),
    stdio: 'pipe',
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += String(chunk)
    options.onStdout?.(stdout, child)
  })
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk)
  })
  child.stdin.end(options.input ?? '')
  const [code] = await once(child, 'close')
  return { code: code as number | null, stdout, stderr }
}

/** Starts `sallyport up` on a free port and waits until it serves. */
export async function startSallyport(
  options: {
    readonly dataDirectory?: string
    readonly args?: readonly string[]
    readonly env?: NodeJS.ProcessEnv
    /** The Node.js that runs it; the one of the tests unless given. */
    readonly node?: string
  } = {},
): Promise<SallyportProcess> {
  const dist = await buildOnce()
  const ownDirectory = options.dataDirectory === undefined
  const dataDirectory = options.dataDirectory ?? (await mkdtemp(join(tmpdir(), 'sallyport-')))
  const port = options.args?.includes('--secure-port') ? [] : ['--secure-port', '0']
  const child = spawn(
    options.node ?? process.execPath,
    [
      join(dist, 'cli', 'main.js'),
      'up',
      '--output',
      'json',
      '--data-dir',
      dataDirectory,
      ...port,
      ...(options.args ?? []),
    ],
    { env: { ...process.env, ...options.env }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk)
  })
  const lines = createInterface({ input: child.stdout })
  const first = await Promise.race([
    once(lines, 'line').then(([line]) => String(line)),
    once(child, 'exit').then(() => undefined),
  ])
  if (first === undefined) throw new Error(`sallyport up ended at once:\n${stderr}`)
  const said: unknown = JSON.parse(first)
  const { server, kubeconfig, tunnel } = said as Serving
  return {
    server,
    kubeconfig,
    ...(tunnel !== undefined && { tunnel }),
    dataDirectory,
    process: child,
    stderr: () => stderr,
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
      if (ownDirectory) await rm(dataDirectory, { recursive: true, force: true })
      return child.exitCode
    },
  }
}
