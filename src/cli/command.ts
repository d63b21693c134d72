import type { OptionTable, OptionValues } from '../core/index.ts'
import type { Io } from './io.ts'
import type { CommandShape } from './options/index.ts'

/** What a command is run with. */
interface Invocation<Table extends OptionTable> {
  readonly options: OptionValues<Table>
  readonly args: readonly string[]
}

/** One command: how it is called, and what it does. */
export interface Command<Table extends OptionTable = OptionTable> extends CommandShape {
  readonly options: Table
  /** Another word for the command, which help does not list. */
  readonly alias?: string
  /** Returns a number to exit with where that is another program's; 0 otherwise. */
  run(invocation: Invocation<Table>, io: Io): Promise<void | number>
}

/** A command whose `run` gets the values of its own options, as one of many commands. */
export function defineCommand<const Table extends OptionTable>(command: Command<Table>): Command {
  // The runner gives `run` what it parsed by this very table.
  return command as unknown as Command
}
