import { open, stat } from 'node:fs/promises'
import { goQuote, systemErrorCode } from '../../core/index.ts'
import type { ExecConfig } from '../../kubeconfig/index.ts'
import type { Credential } from '../credential.ts'
import type { CredentialErrorCode } from '../errors.ts'
import { decodeOutput } from './decode-output.ts'
import { renderExecInfo } from './exec-info.ts'
import { inspectPlugin } from './inspect-plugin.ts'
import {
  execInfoVariable,
  type PluginHost,
  type PluginName,
  type PluginRun,
  pluginError,
} from './plugin.ts'
import { inTurn, pluginEnvironment } from './plugin-environment.ts'
import {
  type ProcessEnd,
  type Program,
  runProcess,
  type Stopped,
  timeoutOf,
} from './plugin-process.ts'

/** A failure in words that follow the plugin's name. */
interface Failure {
  readonly code: CredentialErrorCode
  readonly what: string
}

/** Why the system did not start a program; its own error is not passed on, for it holds all arguments. */
async function explainSpawnFailure(
  error: unknown,
  program: Program,
  host: PluginHost,
): Promise<Failure> {
  const code = systemErrorCode(error) ?? 'unknown error'
  if (code === 'E2BIG') return tooLarge(program)
  if (code === 'ENOENT') return missing(program.path, host)
  if (code === 'EACCES' || code === 'ENOEXEC') {
    return { code: 'NOT_EXECUTABLE', what: `cannot be executed (${code})` }
  }
  return { code: 'SPAWN', what: `could not be started (${code})` }
}

function tooLarge({ env }: Program): Failure {
  const bytes = Buffer.byteLength(env[execInfoVariable] ?? '')
  return {
    code: 'INPUT_TOO_LARGE',
    what: `could not be started, because its arguments and environment are too large for this system (E2BIG); what provideClusterInfo adds makes ${execInfoVariable} ${bytes} bytes, and Linux allows 131072 for one variable: use a smaller certificate-authority, or turn provideClusterInfo off`,
  }
}

/** The program was there a moment ago, so ENOENT is about something else. */
async function missing(path: string, host: PluginHost): Promise<Failure> {
  const isDirectory = await stat(host.cwd).then(
    (found) => found.isDirectory(),
    () => false,
  )
  if (!isDirectory) {
    return { code: 'SPAWN', what: 'could not be started: the working directory does not exist' }
  }
  const interpreter = /^#!\s*(\S+)/.exec(await beginning(path))?.[1]
  if (interpreter === undefined) {
    return { code: 'NOT_EXECUTABLE', what: 'cannot be executed: it or its loader does not exist' }
  }
  const what = `is a script whose interpreter ${goQuote(interpreter)} does not exist`
  return { code: 'NOT_EXECUTABLE', what }
}

/**
 * Refuses what the system would not run but the C library would hand to a shell, and text with a null
 * character, for which Node.js has an error that quotes it.
 */
async function problemOfProgram(
  { path, args, env }: Program,
  { env: configured = [] }: ExecConfig,
): Promise<Failure | undefined> {
  if (args.some((arg) => arg.includes('\0')) || path.includes('\0')) {
    return { code: 'CONFIG_INVALID', what: 'has a null character in its command or arguments' }
  }
  const bad = configured.find(({ name }) => `${name}${env[name]}`.includes('\0'))
  if (bad) return { code: 'CONFIG_INVALID', what: 'has a null character in a variable of its env' }
  const start = await beginning(path)
  if (start === unreadable || start.startsWith('#!') || start.includes('\0')) return undefined
  return { code: 'NOT_EXECUTABLE', what: 'is a text without a #! line: nothing says what runs it' }
}

const unreadable = '\0unreadable'

async function beginning(path: string): Promise<string> {
  try {
    const file = await open(path, 'r')
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(256), 0, 256, 0)
      return buffer.toString('latin1', 0, bytesRead)
    } finally {
      await file.close()
    }
  } catch {
    return unreadable // one may run what one may not read
  }
}

/**
 * Runs a plugin and gives the credential that it prints; rejects with a CredentialError. The signal ends
 * the plugin: whoever shares a run among several must not pass on the signal of one of them.
 */
export async function runPlugin(
  run: PluginRun,
  host: PluginHost,
  signal?: AbortSignal,
): Promise<Credential> {
  const { exec } = run
  const { resolvedPath, interactive } = await inspectPlugin(run, host)
  const plugin = { command: exec.command, resolvedPath }
  const execInfo = renderExecInfo(run, interactive, host.inputDialect)
  const program = {
    path: resolvedPath,
    args: exec.args ?? [],
    env: pluginEnvironment(exec, host, execInfo),
    interactive,
  }
  const problem = await problemOfProgram(program, exec)
  if (problem) throw pluginError(problem.code, plugin, problem.what)
  const start = (): Promise<ProcessEnd> => startUnlessAborted(program, plugin, host, signal)
  const end = await (interactive ? inTurn(start, signal) : start())
  checkEnd(end, plugin, timeoutOf(interactive, host))
  return decodeOutput(end.stdout, exec.apiVersion, plugin)
}

async function startUnlessAborted(
  program: Program,
  plugin: PluginName,
  host: PluginHost,
  signal?: AbortSignal,
): Promise<ProcessEnd> {
  if (signal?.aborted) throw pluginError('ABORTED', plugin, wordsFor('ABORTED', 0))
  try {
    return await runProcess(program, host, signal)
  } catch (error) {
    const { code, what } = await explainSpawnFailure(error, program, host)
    throw pluginError(code, plugin, what)
  }
}

function checkEnd(end: ProcessEnd, plugin: PluginName, timeoutMs: number): void {
  const { exitCode, signal, stopped } = end
  if (stopped) throw pluginError(stopped, plugin, wordsFor(stopped, timeoutMs))
  if (signal !== null) throw pluginError('SIGNAL', plugin, `was ended by ${signal}`, { signal })
  if (exitCode !== null && exitCode !== 0) {
    throw pluginError('EXIT', plugin, `failed with exit code ${exitCode}`, { exitCode })
  }
}

function wordsFor(stopped: Stopped, timeoutMs: number): string {
  switch (stopped) {
    case 'TIMEOUT':
      return `did not end within ${timeoutMs / 1_000} s and was ended`
    case 'OUTPUT_TOO_LARGE':
      return 'printed more on stdout than any credential needs and was ended'
    case 'ABORTED':
      return 'was given up'
  }
}
