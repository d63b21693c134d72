import { open, rm } from 'node:fs/promises'
import { type Clock, CommandFailed, pause, systemErrorCode } from '../core/index.ts'

const waitMs = 10_000
const lookEveryMs = 50

/** Does something while holding `<path>.lock`, as kubectl does before it writes a kubeconfig. */
export async function withKubeconfigLock<T>(
  path: string,
  clock: Clock,
  signal: AbortSignal,
  act: () => Promise<T>,
): Promise<T> {
  const lock = `${path}.lock`
  const deadline = clock.monotonic() + waitMs
  while (!(await take(lock))) {
    signal.throwIfAborted()
    if (clock.monotonic() >= deadline) {
      throw new CommandFailed('KUBECONFIG_LOCKED', `${path} is locked by another process`, {
        hint: `if no other process uses it, remove ${lock}`,
      })
    }
    await pause(lookEveryMs, signal)
  }
  try {
    return await act()
  } finally {
    await rm(lock, { force: true })
  }
}

async function take(lock: string): Promise<boolean> {
  try {
    // Exclusive creation also refuses a link that somebody has put there.
    const file = await open(lock, 'wx', 0o600)
    await file.close()
    return true
  } catch (cause) {
    if (systemErrorCode(cause) === 'EEXIST') return false
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('KUBECONFIG_UNLOCKABLE', `cannot make ${lock}: ${code}`, {
      hint: 'the directory of the kubeconfig must be writable',
      cause,
    })
  }
}
