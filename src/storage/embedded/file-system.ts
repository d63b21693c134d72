import { constants, writeSync } from 'node:fs'
import {
  chmod,
  type FileHandle,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  unlink,
} from 'node:fs/promises'
import { platform } from 'node:os'
import { dirname, resolve } from 'node:path'
import { systemErrorCode } from '../../core/index.ts'
import { structuralDamage } from './damage.ts'
import {
  decodeFileHeader,
  encodeFileHeader,
  type FileHeader,
  type FileKind,
  fileHeaderLength,
} from './file-format.ts'

/** An open file; positions are explicit, there is no cursor. */
export interface OpenFile {
  /** Reads into the whole of `target`; returns how many bytes there were. */
  read(target: Buffer, position: number): Promise<number>
  /** Writes all bytes or throws. */
  write(parts: readonly Buffer[], position: number): Promise<void>
  /** Writes a few bytes at once, without a turn of the event loop; they are not durable by that. */
  writeNow(bytes: Buffer, position: number): void
  truncate(length: number): Promise<void>
  /** Resolves when all content is on disk. */
  sync(): Promise<void>
  size(): Promise<number>
  close(): Promise<void>
}

/**
 * - `read`: must exist
 * - `edit`: must exist, read and write
 * - `edit-durable`: as `edit`, and each `write` is on disk when it resolves
 * - `create`: must not exist
 */
export type OpenMode = 'read' | 'edit' | 'edit-durable' | 'create'

/** The part of a file system that the store needs; tests inject one that fails and loses power. */
export interface FileOps {
  open(path: string, mode: OpenMode): Promise<OpenFile>
  /** Makes the directory and its parents, and their names durable; no error when it exists. */
  makeDirectory(path: string): Promise<void>
  /** Names in the directory; throws ENOENT when it does not exist. */
  list(directory: string): Promise<readonly string[]>
  rename(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
  /** Resolves when the names made, changed and removed in the directory are on disk. */
  syncDirectory(path: string): Promise<void>
  /** 16 bytes that change whenever the system starts; zeros where the system has no such thing. */
  bootId(): Promise<Buffer>
}

/**
 * On Linux one write with O_DSYNC does what write and fdatasync do, in one trip through the thread
 * pool instead of two: measured a third faster. Elsewhere the flag promises less than fdatasync.
 */
const dsyncFlag = platform() === 'linux' ? constants.O_DSYNC : 0

const flagsOf: Readonly<Record<OpenMode, number>> = {
  read: constants.O_RDONLY,
  edit: constants.O_RDWR,
  'edit-durable': constants.O_RDWR | dsyncFlag,
  create: constants.O_RDWR | constants.O_CREAT | constants.O_EXCL,
}

/** The machine's own file system; all that it makes is for the owner only. */
export const nodeFiles: FileOps = {
  async open(path, mode) {
    const handle = await open(path, flagsOf[mode], 0o600)
    return new NodeFile(handle, mode === 'edit-durable' && dsyncFlag === 0)
  },
  async makeDirectory(path) {
    const firstMade = await mkdir(path, { recursive: true, mode: 0o700 })
    if (firstMade === undefined) return
    await chmod(path, 0o700) // the umask must not decide
    for (let made = resolve(path); made.length >= firstMade.length; made = dirname(made)) {
      await syncDirectory(dirname(made))
    }
  },
  list: (directory) => readdir(directory),
  rename,
  remove: unlink,
  syncDirectory,
  async bootId() {
    const text = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
    const bytes = Buffer.from(text.replaceAll('-', '').trim(), 'hex')
    return bytes.length === 16 ? bytes : Buffer.alloc(16)
  },
}

async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

class NodeFile implements OpenFile {
  readonly #handle: FileHandle
  readonly #syncEachWrite: boolean

  constructor(handle: FileHandle, syncEachWrite: boolean) {
    this.#handle = handle
    this.#syncEachWrite = syncEachWrite
  }

  async read(target: Buffer, position: number): Promise<number> {
    let filled = 0
    while (filled < target.length) {
      const { bytesRead } = await this.#handle.read(
        target,
        filled,
        target.length - filled,
        position + filled,
      )
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return filled
  }

  async write(parts: readonly Buffer[], position: number): Promise<void> {
    let rest = parts.filter((part) => part.length > 0)
    let at = position
    while (rest.length > 0) {
      const { bytesWritten } = await this.#handle.writev(rest, at)
      at += bytesWritten
      rest = withoutFirst(rest, bytesWritten)
    }
    if (this.#syncEachWrite) await this.#handle.datasync()
  }

  writeNow(bytes: Buffer, position: number): void {
    writeSync(this.#handle.fd, bytes, 0, bytes.length, position)
  }

  truncate(length: number): Promise<void> {
    return this.#handle.truncate(length)
  }

  sync(): Promise<void> {
    return this.#handle.datasync()
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** What is left to write after the system took `count` bytes. */
function withoutFirst(parts: readonly Buffer[], count: number): Buffer[] {
  const rest: Buffer[] = []
  let skip = count
  for (const part of parts) {
    if (skip < part.length) rest.push(part.subarray(skip))
    skip = Math.max(0, skip - part.length)
  }
  return rest
}

/** The content of a small file. */
export async function readWholeFile(files: FileOps, path: string): Promise<Buffer> {
  const file = await files.open(path, 'read')
  try {
    const bytes = Buffer.alloc(await file.size())
    return bytes.subarray(0, await file.read(bytes, 0))
  } finally {
    await file.close()
  }
}

/** Makes a file with this content on disk, in place of one that may be there. Its name is not synced. */
export async function writeWholeFile(files: FileOps, path: string, bytes: Buffer): Promise<void> {
  await removeIfThere(files, path)
  const file = await files.open(path, 'create')
  try {
    await file.write([bytes], 0)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Removes a file; none there is fine. */
export async function removeIfThere(files: FileOps, path: string): Promise<void> {
  try {
    await files.remove(path)
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
}

/** An open file that holds batches. */
export interface DataFile {
  readonly path: string
  readonly file: OpenFile
  readonly header: FileHeader
}

/** Opens a file and reads its header; throws `StoreDamaged` when it is missing or not what it should be. */
export async function openDataFile(
  files: FileOps,
  path: string,
  kind: FileKind,
): Promise<DataFile> {
  const file = await files.open(path, 'read').catch((error: unknown) => {
    if (systemErrorCode(error) !== 'ENOENT') throw error
    throw structuralDamage(path, 0, 'the file is missing')
  })
  try {
    const bytes = Buffer.alloc(fileHeaderLength)
    const header = decodeFileHeader(bytes.subarray(0, await file.read(bytes, 0)), kind)
    if (typeof header === 'string') throw structuralDamage(path, 0, header)
    return { path, file, header }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Makes a file that holds nothing but its header, not yet synced. */
export async function createDataFile(
  files: FileOps,
  path: string,
  header: FileHeader,
): Promise<DataFile> {
  const file = await files.open(path, 'create')
  try {
    await file.write([encodeFileHeader(header)], 0)
    return { path, file, header }
  } catch (error) {
    await file.close()
    throw error
  }
}
