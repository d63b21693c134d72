import { CommandFailed, type OptionTable, type OptionValues, WrongUsage } from '../core/index.ts'
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

/** Does a check of what was typed: what is malformed is a matter of the command line. */
export function asWrongUsage<T>(check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof CommandFailed) || error.code !== 'BAD_ARGUMENTS') throw error
    throw new WrongUsage(`${error.message}\nhint: ${error.hint}`)
  }
}

/** A failure that has a result all the same, such as what a check has found. */
export class FailedWithResult extends CommandFailed {
  /** What `--output json` prints beside the error. */
  readonly result: object

  constructor(
    failure: { readonly code: string; readonly message: string; readonly hint: string },
    result: object,
  ) {
    super(failure.code, failure.message, { hint: failure.hint })
    this.result = result
  }
}
