import type { Command } from '../command.ts'
import { serveCommand } from './serve.ts'
import { storeBackupCommand, storeCheckCommand, storeRestoreCommand } from './store.ts'
import { upCommand } from './up.ts'
import { versionCommand } from './version.ts'

/** Every command, in the order in which help lists them. */
export const commands: readonly Command[] = [
  upCommand,
  serveCommand,
  storeCheckCommand,
  storeBackupCommand,
  storeRestoreCommand,
  versionCommand,
]
