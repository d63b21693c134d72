import { type ChildProcess, spawn } from 'node:child_process'
import { access, constants as constants_findCommand, stat } from 'node:fs/promises'
import { constants } from 'node:os'
import { resolve } from 'node:path'
import { CommandFailed } from '../../core/index.ts'
import type { ProcessEnd, WorkloadPlan } from '../pod/pod-object.ts'

/** Sends a signal to a process, or to a group if the number is negative, as `kill` does. */
export type SendSignal = (pid: number, signal: NodeJS.Signals) => void

/** The process of a workload, in a group of its own, with the terminal's input and output. */
export class WorkloadProcess {
  /** Resolves when it has ended, and all that it left behind in its group. */
  readonly ended: Promise<ProcessEnd>
  readonly #child: ChildProcess
  readonly #send: SendSignal

  constructor(
    words: readonly string[],
    env: Readonly<Record<string, string | undefined>>,
    send: SendSignal,
  ) {
    const [program = '', ...args] = words
    // A group of its own: signals reach whatever a shell or npm has started, and nothing else.
    this.#child = spawn(program, args, { stdio: 'inherit', env: { ...env }, detached: true })
    this.#send = send
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject)
      this.#child.once('exit', (code, signal) => {
        this.signal('SIGKILL')
        resolve(endOf(code, signal))
      })
    })
  }

  /** Sends a signal to the process and to what it has started; none is left to get it after the end. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      this.#send(-pid, signal)
    } catch {
      // The whole group is gone.
    }
  }
}

/** As a shell tells it: 128 and the number of the signal. */
function endOf(code: number | null, signal: NodeJS.Signals | null): ProcessEnd {
  if (signal === null) return { exitCode: code ?? 1 }
  const number = constants.signals[signal]
  return { exitCode: 128 + number, signal: number }
}

/** Runs a command that only does or does not work; returns what it complained of, or nothing. */
export function complaintOf(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  const [program = '', ...args] = words
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...env },
      timeout: 10_000,
    })
    let complaint = ''
    child.stderr.on('data', (chunk: Buffer) => {
      complaint = (complaint + String(chunk)).slice(0, 2_000)
    })
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code) =>
      resolve(code === 0 ? undefined : complaint.trim().split('\n').at(-1) || `exit code ${code}`),
    )
  })
}

/** Makes sure that a command can be run before anything is registered for it. */
export async function requireCommand(
  command: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const directories = command.includes('/') ? [''] : (env['PATH'] ?? '').split(':')
  for (const directory of directories) {
    if (await isProgram(directory === '' ? command : resolve(directory, command))) return
  }
  throw new CommandFailed(
    'NO_COMMAND',
    command.includes('/') ? `${command} is no program` : `${command} is not found in PATH`,
    { hint: 'the command follows two dashes: sallyport workload run [options] -- COMMAND...' },
  )
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants_findCommand.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** What every workload is told of itself; the kubeconfig of the machine is not for it. */
export function workloadEnvironment(
  env: Environment,
  plan: WorkloadPlan,
  directory: string,
): Record<string, string | undefined> {
  const { KUBECONFIG: _, SALLYPORT_KUBECONFIG: _ours, ...others } = env
  const [first] = plan.ports
  return {
    ...others,
    HOSTNAME: plan.name,
    POD_NAME: plan.name,
    POD_NAMESPACE: plan.namespace,
    POD_IP: plan.ip,
    POD_SERVICE_ACCOUNT: plan.serviceAccount,
    SALLYPORT_SERVICE_ACCOUNT_DIR: directory,
    ...(first && { PORT: String(first.port) }),
  }
}

/** What in-cluster clients look for, as the kubelet writes it for the Service `kubernetes`. */
export function inClusterEnvironment(server: URL): Record<string, string> {
  if (server.pathname !== '/' || server.protocol !== 'https:')
    throw new CommandFailed(
      'SERVER_NOT_IN_CLUSTER',
      `in-cluster clients know the API by host and port alone, and ${server.href} is more than that`,
      { hint: 'use a kubeconfig that names an https server without a path, or --no-in-cluster' },
    )
  const host = server.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = server.port || '443'
  const address = `tcp://${server.hostname}:${port}`
  const tcp = `KUBERNETES_PORT_${port}_TCP`
  return {
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
    KUBERNETES_SERVICE_PORT_HTTPS: port,
    KUBERNETES_PORT: address,
    [tcp]: address,
    [`${tcp}_PROTO`]: 'tcp',
    [`${tcp}_PORT`]: port,
    [`${tcp}_ADDR`]: host,
  }
}
