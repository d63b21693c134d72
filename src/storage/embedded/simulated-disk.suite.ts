import { dirname } from 'node:path'
import type { FileOps, OpenFile, OpenMode } from './file-system.ts'

const sectorBytes = 512

/** Content as the running system sees it, and what of it would survive a loss of power. */
interface Inode {
  current: Buffer
  durable: Buffer
  /** Changes that are not synced, in order. */
  pending: ((content: Buffer) => Buffer)[]
}

type Names = Map<string, Inode>

/** An operation that is about to happen. */
export interface DiskOperation {
  readonly name: keyof FileOps | keyof OpenFile
  readonly path: string
}

/** Makes a system error such as ENOSPC. */
function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: simulated`), { code })
}

/**
 * A file system in memory that keeps apart what was written and what is on disk. It can refuse any
 * operation, and stop for good at any of them: as when the process is killed, or the power fails
 * and unsynced sectors are lost in any order.
 */
export class SimulatedDisk implements FileOps {
  /** Asked before each operation; the code of the system error it shall fail with, if any. */
  fault: (operation: DiskOperation) => string | undefined = () => undefined
  /** The number of the operation, counted from 1, at which everything stops. */
  stopAt = Number.POSITIVE_INFINITY
  operations = 0
  readonly #random: () => number
  #boot = 1
  #names: Names
  #durableNames: Names
  #pendingNames: ((names: Names) => void)[] = []
  #directories = new Set<string>()

  constructor(random: () => number = Math.random, names: Names = new Map()) {
    this.#random = random
    this.#names = names
    this.#durableNames = new Map(names)
    for (const path of names.keys()) this.#directories.add(dirname(path))
  }

  /** The disk as the next process finds it: all that was written is there, synced or not. */
  afterKill(): SimulatedDisk {
    this.stopAt = 0
    const next = new SimulatedDisk(this.#random, this.#names)
    next.#durableNames = this.#durableNames
    next.#pendingNames = this.#pendingNames
    next.#directories = this.#directories
    next.#boot = this.#boot
    return next
  }

  /** The disk after a loss of power: of what was not synced, any part may be there. */
  afterPowerLoss(): SimulatedDisk {
    this.stopAt = 0
    const names = new Map(this.#durableNames)
    const kept = Math.floor(this.#random() * (this.#pendingNames.length + 1))
    for (const change of this.#pendingNames.slice(0, kept)) change(names)
    const survivors: Names = new Map()
    for (const [path, inode] of names) {
      const content = this.#survivingContent(inode)
      survivors.set(path, { current: content, durable: Buffer.from(content), pending: [] })
    }
    const next = new SimulatedDisk(this.#random, survivors)
    for (const directory of this.#directories) next.#directories.add(directory)
    next.#boot = this.#boot + 1
    return next
  }

  /** Another disk with the same files, all of them synced. */
  copy(): SimulatedDisk {
    const copy = new SimulatedDisk(this.#random)
    for (const [path, { current }] of this.#names) copy.put(path, Buffer.from(current))
    copy.#boot = this.#boot
    return copy
  }

  /** The paths of all files. */
  paths(): string[] {
    return [...this.#names.keys()].toSorted()
  }

  /** The content of a file, to look at and to damage. */
  content(path: string): Buffer {
    return this.#inode(path).current
  }

  /** Replaces or makes a file, as somebody else would. */
  put(path: string, content: Buffer): void {
    this.#directories.add(dirname(path))
    this.#names.set(path, { current: content, durable: Buffer.from(content), pending: [] })
    this.#durableNames.set(path, this.#inode(path))
  }

  /** Removes a file, as somebody else would. */
  forget(path: string): void {
    this.#names.delete(path)
    this.#durableNames.delete(path)
  }

  async open(path: string, mode: OpenMode): Promise<OpenFile> {
    await this.#begin({ name: 'open', path })
    if (mode === 'create') {
      if (this.#names.has(path)) throw systemError('EEXIST')
      const inode: Inode = { current: Buffer.alloc(0), durable: Buffer.alloc(0), pending: [] }
      this.#rename((names) => names.set(path, inode))
    }
    return this.#file(path, this.#inode(path), mode)
  }

  async makeDirectory(path: string): Promise<void> {
    await this.#begin({ name: 'makeDirectory', path })
    this.#directories.add(path)
  }

  async list(directory: string): Promise<readonly string[]> {
    await this.#begin({ name: 'list', path: directory })
    if (!this.#directories.has(directory)) throw systemError('ENOENT')
    return this.paths()
      .filter((path) => dirname(path) === directory)
      .map((path) => path.slice(directory.length + 1))
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#begin({ name: 'rename', path: to })
    const inode = this.#inode(from)
    this.#rename((names) => {
      names.delete(from)
      names.set(to, inode)
    })
  }

  async remove(path: string): Promise<void> {
    await this.#begin({ name: 'remove', path })
    this.#inode(path)
    this.#rename((names) => names.delete(path))
  }

  async syncDirectory(path: string): Promise<void> {
    await this.#begin({ name: 'syncDirectory', path })
    this.#durableNames = new Map(this.#names)
    this.#pendingNames = []
  }

  async bootId(): Promise<Buffer> {
    return Buffer.alloc(16, this.#boot)
  }

  #file(path: string, inode: Inode, mode: OpenMode): OpenFile {
    const durable = mode === 'edit-durable'
    const change = (edit: (content: Buffer) => Buffer): void => {
      inode.current = edit(inode.current)
      inode.pending.push(edit)
    }
    const sync = (): void => {
      inode.durable = Buffer.from(inode.current)
      inode.pending = []
    }
    return {
      read: async (target, position) => {
        await this.#begin({ name: 'read', path })
        return inode.current.copy(target, 0, position)
      },
      write: async (parts, position) => {
        const bytes = Buffer.concat(parts)
        // A write that is interrupted may have come as far as any sector.
        const torn = bytes.subarray(0, Math.floor(this.#random() * (bytes.length + 1)))
        await this.#begin({ name: 'write', path }, () => change(overwrite(torn, position)))
        change(overwrite(bytes, position))
        if (durable) sync()
      },
      writeNow: (bytes, position) => {
        this.#require({ name: 'writeNow', path })
        change(overwrite(bytes, position))
      },
      truncate: async (length) => {
        await this.#begin({ name: 'truncate', path })
        change((content) => Buffer.from(content.subarray(0, length)))
      },
      sync: async () => {
        await this.#begin({ name: 'sync', path })
        sync()
      },
      size: async () => inode.current.length,
      close: async () => {},
    }
  }

  async #begin(operation: DiskOperation, interrupted?: () => void): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
    this.#require(operation, interrupted)
  }

  #require(operation: DiskOperation, interrupted?: () => void): void {
    this.operations++
    if (this.operations === this.stopAt) interrupted?.()
    if (this.operations >= this.stopAt) throw systemError('EIO')
    const code = this.fault(operation)
    if (code === undefined) return
    interrupted?.()
    throw systemError(code)
  }

  #inode(path: string): Inode {
    const inode = this.#names.get(path)
    if (inode === undefined) throw systemError('ENOENT')
    return inode
  }

  #rename(change: (names: Names) => void): void {
    change(this.#names)
    this.#pendingNames.push(change)
  }

  /** Every sector of every unsynced change has made it or not. */
  #survivingContent(inode: Inode): Buffer {
    let content = Buffer.from(inode.durable)
    for (const change of inode.pending) {
      const changed = change(content)
      const mixed = Buffer.from(changed)
      for (let at = 0; at < mixed.length; at += sectorBytes) {
        if (this.#random() < 0.5) continue
        mixed.fill(0, at, Math.min(at + sectorBytes, mixed.length))
        if (at < content.length) content.copy(mixed, at, at, at + sectorBytes)
      }
      content = mixed
    }
    return content
  }
}

const overwrite =
  (bytes: Buffer, position: number) =>
  (content: Buffer): Buffer => {
    const length = Math.max(content.length, position + bytes.length)
    const changed = Buffer.alloc(length)
    content.copy(changed)
    bytes.copy(changed, position)
    return changed
  }

/** Random numbers that are the same in each run. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32
  }
}
