import { homedir } from 'node:os'
import process from 'node:process'
import type { Io } from './io.ts'

/** The real process as a command sees it. */
export function processIo(): Io {
  const drain = new AbortController()
  const kill = new AbortController()
  const onSignal = (): void => {
    if (drain.signal.aborted) kill.abort()
    else drain.abort()
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  // A reader that goes away (`| head`) is not a failure of ours.
  process.stdout.on('error', () => {})
  return {
    env: process.env,
    interactive: process.stderr.isTTY === true,
    columns: process.stdout.columns ?? 80,
    isRoot: process.getuid?.() === 0,
    homeDirectory: homedir(),
    stdout: (line) => void process.stdout.write(line),
    stderr: (line) => void process.stderr.write(line),
    drain: drain.signal,
    kill: kill.signal,
  }
}
