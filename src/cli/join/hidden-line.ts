import type { ReadStream } from 'node:tty'
import { CommandFailed } from '../../core/index.ts'

const key = { interrupt: '\u0003', end: '\u0004', backspace: '\u007F', deletes: '\b' } as const

/** Reads a line that is typed on a terminal without showing it; `ask` is called once nothing is shown any more. */
export function hiddenLine(terminal: ReadStream, ask: () => void): Promise<string> {
  return new Promise((resolve, reject) => {
    let line = ''
    // By events: a loop over the stream would close it before the terminal is as it was.
    const done = (settle: () => void): void => {
      terminal.off('data', listen).pause().setRawMode(false)
      settle()
    }
    const take = (character: string): boolean => {
      if (character === key.interrupt) {
        done(() =>
          reject(new CommandFailed('ABORTED', 'no token was typed', { hint: 'run it again' })),
        )
        return false
      }
      if (character === '\r' || character === '\n' || character === key.end) {
        done(() => resolve(line))
        return false
      }
      const isErased = character === key.backspace || character === key.deletes
      line = isErased ? line.slice(0, -1) : line + character
      return true
    }
    const listen = (typed: Buffer): void => {
      for (const character of typed.toString()) if (!take(character)) return
    }
    terminal.setRawMode(true)
    ask()
    terminal.on('data', listen).resume()
  })
}
