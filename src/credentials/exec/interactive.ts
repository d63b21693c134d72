import type { ExecConfig } from '../../kubeconfig/index.ts'
import { v1 } from './exec-versions.ts'
import { pluginError } from './plugin-error.ts'
import type { PluginHost } from './plugin-run.ts'

/** Decides whether the plugin gets stdin, and with it the user; refuses a run that needs but cannot have it. */
export function isInteractive(exec: ExecConfig, host: PluginHost): boolean {
  switch (modeOf(exec)) {
    case 'Never':
      return false
    case 'IfAvailable':
      return host.stdinUnavailable === undefined && host.stdinIsTty()
    case 'Always':
      return mustBeInteractive(exec, host)
  }
}

function mustBeInteractive(exec: ExecConfig, host: PluginHost): true {
  const refuse = (why: string): Error =>
    pluginError(
      'INTERACTIVE_UNAVAILABLE',
      exec,
      `must ask the user (interactiveMode Always): ${why}`,
    )
  if (!host.stdinIsTty()) throw refuse('stdin is not a terminal')
  const reason = host.stdinUnavailable
  if (reason === undefined) return true
  throw refuse(reason === true ? 'stdin is in use' : `stdin is in use: ${reason}`)
}

function modeOf(exec: ExecConfig): 'Never' | 'IfAvailable' | 'Always' {
  const { interactiveMode: mode } = exec
  if (mode === 'Never' || mode === 'IfAvailable' || mode === 'Always') return mode
  if (mode === undefined && exec.apiVersion !== v1) return 'IfAvailable'
  const what = mode === undefined ? 'needs an interactiveMode' : 'has an unknown interactiveMode'
  throw pluginError('CONFIG_INVALID', exec, `${what}: one of Never, IfAvailable, Always`)
}
