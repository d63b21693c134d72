import type { ReadStream } from 'node:tty'
import { CommandFailed } from '../../core/index.ts'

const key = { interrupt: '\u0003', end: '\u0004', backspace: '\u007F', deletes: '\b' } as const

/** Reads a line that is typed on a terminal without showing it; `ask` is called once nothing is shown any more. */
export async function hiddenLine(terminal: ReadStream, ask: () => void): Promise<string> {
  terminal.setRawMode(true)
  try {
    ask()
    let line = ''
    for await (const typed of terminal) {
      for (const character of String(typed)) {
        if (character === '\r' || character === '\n' || character === key.end) return line
        if (character === key.interrupt)
          throw new CommandFailed('ABORTED', 'no token was typed', { hint: 'run it again' })
        const isErased = character === key.backspace || character === key.deletes
        line = isErased ? line.slice(0, -1) : line + character
      }
    }
    return line
  } finally {
    terminal.setRawMode(false)
  }
}
