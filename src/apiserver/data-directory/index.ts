import { constants } from 'node:fs'
import { access, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import {
  CommandFailed,
  makePrivateDirectory,
  readFileIfPresent,
  requireTrustedDirectory,
  systemErrorCode,
} from '../../core/index.ts'

/** The paths of a server's state. */
export interface DataDirectory {
  readonly path: string
  readonly pki: string
  readonly store: string
  readonly adminKubeconfig: string
  readonly auditLog: string
  readonly lock: string
}

/** The paths in the data directory at `path`, whether they exist or not. */
export function dataDirectoryAt(path: string): DataDirectory {
  return {
    path,
    pki: join(path, 'pki'),
    store: join(path, 'store'),
    adminKubeconfig: join(path, 'admin.kubeconfig'),
    auditLog: join(path, 'audit.log'),
    lock: join(path, 'lock'),
  }
}

/** The layout of the data directory; increased when a path or a format changes. */
const formatVersion = 1

const secrets = /^(?:admin\.kubeconfig|.+\.key|store-key|tunnel-agent\.pem)$/

/** Files with private keys, which other users may not read. */
const isSecret = (file: string): boolean => secrets.test(basename(file))

async function requireDirectory(path: string): Promise<void> {
  if ((await stat(path)).isDirectory()) return
  throw new CommandFailed('DATA_DIR_INVALID', `${path} is not a directory`, {
    hint: 'choose another directory with --data-dir',
  })
}

async function requireWritable(path: string): Promise<void> {
  await access(path, constants.R_OK | constants.W_OK | constants.X_OK).catch((cause: unknown) => {
    throw new CommandFailed('DATA_DIR_READ_ONLY', `${path} is not writable`, {
      cause,
      hint: 'check its mode and whether its file system is mounted read-only',
    })
  })
}

async function requireFormat(path: string): Promise<void> {
  const file = join(path, 'format-version')
  const text = await readFileIfPresent(file)
  if (text === undefined) {
    // So that git adds none of the keys, wherever the directory is.
    await writeFile(join(path, '.gitignore'), '*\n', { mode: 0o600 })
    await writeFile(file, `${formatVersion}\n`, { mode: 0o600 })
    return
  }
  const found = Number(text.trim())
  if (found === formatVersion) return
  throw new CommandFailed(
    'DATA_DIR_FORMAT',
    found > formatVersion
      ? `${path} was written by a newer Sallyport (format ${found}; this version supports ${formatVersion})`
      : `${file} does not contain a format version: ${JSON.stringify(text.slice(0, 20))}`,
    {
      hint: 'use the version of Sallyport that wrote it, or choose another directory with --data-dir',
    },
  )
}

/** Opens the data directory, and creates it if needed. @throws CommandFailed if other users can write to it. */
export async function openDataDirectory(
  path: string,
  userId: number | undefined,
): Promise<DataDirectory> {
  await makePrivateDirectory(path).catch((cause: unknown) => {
    throw new CommandFailed('DATA_DIR_UNUSABLE', `cannot create the data directory ${path}`, {
      cause,
      hint: `${systemErrorCode(cause) ?? 'unknown error'}; choose another directory with --data-dir`,
    })
  })
  await requireDirectory(path)
  const trusted = await requireTrustedDirectory(
    { path, parts: ['pki', 'store'], isSecret },
    { userId },
  )
  const directory = dataDirectoryAt(trusted)
  await requireWritable(directory.path)
  await makePrivateDirectory(directory.pki)
  await makePrivateDirectory(directory.store)
  await requireFormat(directory.path)
  return directory
}
