import type { Credential } from '../credential.ts'
import { decodeOutput } from './decode-output.ts'
import { renderExecInfo } from './exec-info.ts'
import { inspectPlugin } from './inspect-plugin.ts'
import { inTurn } from './interactive-turn.ts'
import { pluginEnvironment } from './plugin-environment.ts'
import { type PluginName, pluginError } from './plugin-error.ts'
import {
  type ProcessEnd,
  type Program,
  runProcess,
  type Stopped,
  timeoutOf,
} from './plugin-process.ts'
import type { PluginHost, PluginRun } from './plugin-run.ts'
import { explainSpawnFailure, problemOfProgram } from './spawn-failure.ts'

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
