import { open, stat } from 'node:fs/promises'
import { goQuote, systemErrorCode } from '../../core/index.ts'
import type { ExecConfig } from '../../kubeconfig/index.ts'
import type { CredentialErrorCode } from '../credential-error.ts'
import { execInfoVariable } from './exec-versions.ts'
import type { Program } from './plugin-process.ts'
import type { PluginHost } from './plugin-run.ts'

/** A failure in words that follow the plugin's name. */
export interface Failure {
  readonly code: CredentialErrorCode
  readonly what: string
}

/** Why the system did not start a program; its own error is not passed on, for it holds all arguments. */
export async function explainSpawnFailure(
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
export async function problemOfProgram(
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
