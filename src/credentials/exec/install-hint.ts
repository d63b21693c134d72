import { visibleText } from '../../core/index.ts'
import type { ExecConfig } from '../../kubeconfig/index.ts'
import type { PluginHost } from './plugin-run.ts'

const hourMs = 3_600_000
const timesPerHour = 10
const mostCommands = 100
const shown = new Map<string, number[]>()

/** How to install a plugin, in the words of its kubeconfig but without power over the terminal. */
export function installHint({ installHint: hint }: ExecConfig): string | undefined {
  return hint === undefined ? undefined : visibleText(hint)
}

/** Says whether a hint is shown again: a program that tries all the time must not repeat it all the time. */
export function isHintDue({ command }: ExecConfig, { clock }: PluginHost): boolean {
  const now = clock.monotonic()
  const times = (shown.get(command) ?? []).filter((time) => now - time < hourMs)
  if (times.length >= timesPerHour) return false
  shown.delete(command)
  shown.set(command, [...times, now])
  const [oldest] = shown.keys()
  if (shown.size > mostCommands && oldest !== undefined) shown.delete(oldest)
  return true
}
