import { access } from 'node:fs/promises'
import { CommandFailed } from '../core/index.ts'
import type { RepairPlan, StoreReport } from '../storage/index.ts'
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
        hint: 'restore a backup, or see what can be kept: sallyport store repair',
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

/** `sallyport store repair`. */
export const storeRepairCommand = defineCommand({
  command: 'sallyport store repair',
  summary: 'Continue a damaged store with the records that can be read; the server must be stopped',
  options: {
    yes: {
      type: 'boolean',
      default: false,
      describe: 'go through with it; without it the command only prints what it would do',
      group: 'Repair',
    },
    ...options,
  },
  examples: [
    { line: 'sallyport store repair', does: 'prints what can be read and what cannot' },
    {
      line: 'sallyport store repair --yes',
      does: 'continues with what can be read; the bytes that it removes are kept in files',
    },
  ],
  run: async ({ options: { dataDir, output, yes } }, io) => {
    const { acquireDirectoryLock, repairStore } = await import('../storage/index.ts')
    const { serverProcess } = await import('./server-process.ts')
    const directory = await presentStore(dataDir, io)
    const lock = await acquireDirectoryLock(dataDirectory(dataDir, io).path, serverProcess())
    try {
      const plan = await repairStore(directory, { apply: yes })
      if (output === 'json')
        io.stdout(`${JSON.stringify({ repaired: yes && plan !== undefined, ...plan })}\n`)
      else io.stdout(plan === undefined ? `${directory} needs no repair\n` : repairText(plan, yes))
    } finally {
      await lock.release()
    }
  },
})

function repairText(plan: RepairPlan, done: boolean): string {
  const { end, removed, lostHistory, revision, records } = plan
  const verb = done ? '' : 'to be '
  const lines: string[] = []
  if (end)
    lines.push(end.why, `${end.file} can be read up to byte ${end.offset}, revision ${revision}`)
  if (end?.keptIn) lines.push(`${end.bytes} bytes after that are ${verb}moved to ${end.keptIn}`)
  for (const { key, keptIn } of removed)
    lines.push(`${key}: its value is damaged; it is ${verb}removed and its bytes kept in ${keptIn}`)
  if (lostHistory > 0)
    lines.push(`${lostHistory} earlier values are damaged; the history is ${verb}removed`)
  lines.push(`${records} records stay`)
  const losses = [
    ...(end ? ['acknowledged writes after that revision are lost'] : []),
    ...(removed.length > 0
      ? ['what the removed objects granted, denied or revoked no longer counts']
      : []),
  ].join('; ')
  lines.push(
    done
      ? `The store can be opened again. ${losses && `Compare it with what its clients know: ${losses}.`}`
      : `Nothing has been changed. ${losses && `With --yes, ${losses}. `}Restore a backup if you have one, or run this again with --yes.`,
  )
  return `${lines.join('\n')}\n`
}
