import { access } from 'node:fs/promises'
import { CommandFailed } from '../core/index.ts'
import type { StoreReport } from '../storage/index.ts'
import { dataDirectory, dataDirectoryOption, outputOption } from './cluster-source.ts'
import { defineCommand, FailedWithResult } from './command.ts'
import type { Io } from './io.ts'

const options = { ...dataDirectoryOption, ...outputOption }

/** The directory of a store that is there. */
async function presentStore(given: string | undefined, io: Io): Promise<string> {
  const { store: directory } = dataDirectory(given, io)
  await access(directory).catch((cause: unknown) => {
    throw new CommandFailed('NO_STORE', `there is no store in ${directory}`, {
      cause,
      hint: 'name the data directory of a server with --data-dir',
    })
  })
  return directory
}

function showProblems({ problems }: StoreReport, io: Io): void {
  for (const { file, offset, key, what } of problems)
    io.stdout(`${file}:${offset}: ${key ? `record ${key}: ` : ''}${what}\n`)
}

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
    const { checkStore } = await import('../storage/index.ts')
    const directory = await presentStore(dataDir, io)
    const report = await checkStore(directory)
    const { ok, records, revision, segments, problems } = report
    if (!ok) {
      if (output === 'text') showProblems(report, io)
      const count = problems.length === 1 ? 'a damaged place' : `${problems.length} damaged places`
      const failure = {
        code: 'STORE_DAMAGED',
        message: `${directory} has ${count}`,
        hint: 'restore a backup, or delete and create again the records named',
      }
      throw new FailedWithResult(failure, report)
    }
    io.stdout(
      output === 'json'
        ? `${JSON.stringify(report)}\n`
        : `${directory} is sound: ${records} records at revision ${revision} in ${segments} segments\n`,
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
    const { backupStore } = await import('../storage/index.ts')
    const { revision, records } = await backupStore(await presentStore(dataDir, io), file)
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
    const { restoreStore } = await import('../storage/index.ts')
    const { store: directory } = dataDirectory(dataDir, io)
    const { revision, records } = await restoreStore(file, directory)
    if (output === 'json') io.stdout(`${JSON.stringify({ directory, revision, records })}\n`)
    else io.stdout(`${directory} has ${records} records; its revisions go on after ${revision}\n`)
  },
})
