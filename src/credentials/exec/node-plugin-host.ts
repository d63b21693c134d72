import process from 'node:process'
import { isatty } from 'node:tty'
import { systemClock } from '../../core/index.ts'
import type { PluginHost } from './plugin.ts'

/** This process as a host of plugins; the one place in the library that looks at `process`. */
export function nodePluginHost(rules: Partial<PluginHost> = {}): PluginHost {
  return {
    env: process.env,
    // Where the process is when the plugin runs, not when this was made.
    get cwd() {
      return process.cwd()
    },
    platform: process.platform,
    clock: systemClock,
    // `process.stdin` would open a stream on it, and the plugin's prompt would share its input.
    stdinIsTty: () => isatty(0),
    stderr: 'inherit',
    killGroup,
    ...rules,
  }
}

function killGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    // Windows has no groups: there, the process itself is what can be ended.
    process.kill(process.platform === 'win32' ? pid : -pid, signal)
  } catch {
    // It has ended already, or has become another user's: there is nothing left to do about it.
  }
}
