import { access, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'

const stamp = '\\d{4}-\\d{2}-\\d{2}T\\d{2}-\\d{2}-\\d{2}\\.\\d{3}'

/** Renames a log to its name with the time in it, as `audit-2026-01-31T12-00-00.000.log`. */
export async function moveAside(path: string, nowMs: number): Promise<void> {
  for (let ms = nowMs; ; ms++) {
    const backup = backupName(path, ms)
    if (await exists(backup)) continue
    await rename(path, backup)
    return
  }
}

/** Removes the oldest of the logs that were moved aside; 0 keeps all. */
export async function pruneBackups(path: string, keep: number): Promise<void> {
  if (keep === 0) return
  const folder = dirname(path)
  const extension = extname(path)
  const stem = basename(path, extension)
  const isBackup = (name: string): boolean =>
    name.startsWith(`${stem}-`) &&
    name.endsWith(extension) &&
    new RegExp(`^${stamp}$`).test(name.slice(stem.length + 1, name.length - extension.length))
  const backups = (await readdir(folder)).filter(isBackup).sort()
  for (const name of backups.slice(0, -keep)) await rm(join(folder, name), { force: true })
}

function backupName(path: string, ms: number): string {
  const extension = extname(path)
  const time = new Date(ms).toISOString().slice(0, 23).replaceAll(':', '-')
  return join(dirname(path), `${basename(path, extension)}-${time}${extension}`)
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
