import { createHash } from 'node:crypto'
import type { ExecConfig } from '../../kubeconfig/index.ts'
import { execInfoVariable, type PluginHost, pluginError, v1 } from './plugin.ts'

/** Names the plugins that are running above this process. */
export const chainVariable = 'SALLYPORT_EXEC_CHAIN'
const longestChain = 8

/** The variables of a plugin: the host's, then the kubeconfig's, then ours. */
export function pluginEnvironment(
  exec: ExecConfig,
  host: PluginHost,
  execInfo: string,
): Record<string, string> {
  const variables = new Map<string, readonly [name: string, value: string]>()
  const set = (name: string, value: string): void => {
    // Windows does not tell Path from PATH, and would pick one of two by chance.
    variables.set(host.platform === 'win32' ? name.toUpperCase() : name, [name, value])
  }
  const isDropped = dropRule(host)
  for (const [name, value] of Object.entries(host.env)) {
    if (value !== undefined && !isDropped(name)) set(name, value)
  }
  for (const { name, value } of exec.env ?? []) set(name, value.reveal())
  set(execInfoVariable, execInfo)
  set(chainVariable, [...chainAbove(host), fingerprint(exec)].join(','))
  return Object.fromEntries(variables.values())
}

function dropRule({ dropEnv = [] }: PluginHost): (name: string) => boolean {
  return typeof dropEnv === 'function' ? dropEnv : (name) => dropEnv.includes(name)
}

const chainAbove = (host: PluginHost): string[] =>
  host.env[chainVariable]?.split(',').filter(Boolean) ?? []

/** Refuses a plugin that runs under itself: it would start processes without end. */
export function refuseRecursion(exec: ExecConfig, host: PluginHost): void {
  const chain = chainAbove(host)
  if (!chain.includes(fingerprint(exec)) && chain.length < longestChain) return
  throw pluginError(
    'RECURSION',
    exec,
    'needs a credential of itself: let it use a kubeconfig of its own, without this exec section',
  )
}

function fingerprint({ command, args = [], apiVersion }: ExecConfig): string {
  const text = JSON.stringify([command, args, apiVersion])
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

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

let last: Promise<unknown> = Promise.resolve()

/**
 * Holds one conversation with the user at a time in the whole process, so that two prompts never mix.
 * Whoever is no longer interested need not wait: `converse` is called at once, to say so.
 */
export function inTurn<T>(converse: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const before = last
  const mine = settledOrAborted(before, signal).then(converse)
  last = Promise.allSettled([before, mine])
  return mine
}

function settledOrAborted(before: Promise<unknown>, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      signal?.removeEventListener('abort', go)
      resolve()
    }
    signal?.addEventListener('abort', go)
    if (signal?.aborted) go()
    void before.then(go)
  })
}
