import { join } from 'node:path'
import { CommandFailed } from '../../core/index.ts'
import { defineCommand } from '../command.ts'
import { dataDirectoryOption, outputOption } from '../common-options.ts'
import { dataDirectory } from '../data-directory.ts'
import type { Io } from '../io.ts'

const options = { ...dataDirectoryOption, ...outputOption }

const storeDirectory = (given: string | undefined, io: Io): string =>
  join(dataDirectory(given, io), 'store')

/** `sallyport store check`. */
export const storeCheckCommand = defineCommand({
  command: 'sallyport store check',
  summary: 'Verify every record of the embedded store; only reads, a server may be running',
  options,
  examples: [
    {
      line: 'sallyport store check',
      does: 'exits 1 and names each damaged record if there is one',
    },
    {
      line: 'sallyport store check --data-dir ./cluster --output json',
      does: 'the same for a program',
    },
  ],
  run: async ({ options: { dataDir, output } }, io) => {
    const { checkStore } = await import('../../storage/index.ts')
    const directory = storeDirectory(dataDir, io)
    const report = await checkStore(directory)
    if (output === 'json') io.stdout(`${JSON.stringify(report)}\n`)
    else {
      for (const { file, offset, key, what } of report.problems)
        io.stdout(`${file}:${offset}: ${key ? `record ${key}: ` : ''}${what}\n`)
      if (report.ok)
        io.stdout(
          `${directory} is sound: ${report.records} records at revision ${report.revision} in ${report.segments} segments\n`,
        )
    }
    if (!report.ok)
      throw new CommandFailed(
        'STORE_DAMAGED',
        `${directory} has ${report.problems.length} damaged places`,
        {
          hint: 'restore a backup, or delete and create again the records named',
        },
      )
  },
})

/** `sallyport store backup`. */
export const storeBackupCommand = defineCommand({
  command: 'sallyport store backup',
  summary: 'Copy the embedded store at one revision into a file; a server may be running',
  arguments: [{ name: 'FILE', describe: 'the new backup file; it must not exist', required: true }],
  options,
  examples: [
    { line: 'sallyport store backup monday.backup', does: 'writes a file that checks itself' },
  ],
  run: async ({ options: { dataDir, output }, args: [file = ''] }, io) => {
    const { backupStore } = await import('../../storage/index.ts')
    const { revision, records } = await backupStore(storeDirectory(dataDir, io), file)
    if (output === 'json') io.stdout(`${JSON.stringify({ file, revision, records })}\n`)
    else io.stdout(`${file} holds ${records} records at revision ${revision}\n`)
  },
})

/** `sallyport store restore`. */
export const storeRestoreCommand = defineCommand({
  command: 'sallyport store restore',
  summary: 'Make an embedded store from a backup file, in a data directory that has none',
  arguments: [{ name: 'FILE', describe: 'a file that `store backup` wrote', required: true }],
  options,
  examples: [
    {
      line: 'sallyport store restore monday.backup --data-dir ./cluster',
      does: 'keys and certificates are not part of a backup: keep the directory pki with it',
    },
  ],
  run: async ({ options: { dataDir, output }, args: [file = ''] }, io) => {
    const { restoreStore } = await import('../../storage/index.ts')
    const directory = storeDirectory(dataDir, io)
    const { revision, records } = await restoreStore(file, directory)
    if (output === 'json') io.stdout(`${JSON.stringify({ directory, revision, records })}\n`)
    else io.stdout(`${directory} has ${records} records; its revisions go on after ${revision}\n`)
  },
})
