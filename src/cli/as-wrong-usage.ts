import { CommandFailed, WrongUsage } from '../core/index.ts'

/** Does a check of what was typed: what is malformed is a matter of the command line. */
export function asWrongUsage<T>(check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof CommandFailed) || error.code !== 'BAD_ARGUMENTS') throw error
    throw new WrongUsage(`${error.message}\nhint: ${error.hint}`)
  }
}
