import { access, constants, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { CommandFailed } from '../../core/index.ts'

/** Makes sure that a command can be run before anything is registered for it. */
export async function requireCommand(
  command: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const directories = command.includes('/') ? [''] : (env['PATH'] ?? '').split(':')
  for (const directory of directories) {
    if (await isProgram(directory === '' ? command : resolve(directory, command))) return
  }
  throw new CommandFailed(
    'NO_COMMAND',
    command.includes('/') ? `${command} is no program` : `${command} is not found in PATH`,
    { hint: 'the command follows two dashes: sallyport workload run [options] -- COMMAND...' },
  )
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}
