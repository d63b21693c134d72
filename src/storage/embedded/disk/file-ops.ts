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
}
