import { homedir } from 'node:os'
import process from 'node:process'
import type { Readable } from 'node:stream'
import { redact, visibleText } from '../core/index.ts'

/** The world outside a command: where it prints, what it reads, how it is told to end. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  /** True when stderr is a terminal, so that progress makes sense. */
  readonly interactive: boolean
  /** Width of the terminal in columns. */
  readonly columns: number
  readonly isRoot: boolean
  readonly homeDirectory: string
  /** Results. What would command a terminal is made visible there; programs get the text as it is. */
  stdout(text: string): void
  /** Everything else. Whatever has the shape of a credential is removed, and what would command a terminal made visible. */
  stderr(text: string): void
  /** Aborts at the first request to end (Ctrl-C, SIGTERM). */
  readonly drain: AbortSignal
  /** Aborts at the second one. */
  readonly kill: AbortSignal
}

/** Erases the line that a terminal is on, at the beginning of a text for stderr. The one command that it gets from us. */
export const eraseLine = '\r\u001B[K'

function visibleOnTerminal(text: string): string {
  const own = text.startsWith(eraseLine) ? eraseLine : ''
  return own + visibleText(text.slice(own.length))
}

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
    stdout: (text) => void process.stdout.write(process.stdout.isTTY ? visibleText(text) : text),
    stderr: (text) => void process.stderr.write(redact(visibleOnTerminal(text))),
    drain: drain.signal,
    kill: kill.signal,
  }
}

/** What is piped into the program, or typed. */
export const standardInput = (): Readable & { readonly isTTY?: boolean } => process.stdin
