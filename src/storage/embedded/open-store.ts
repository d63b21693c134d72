import { join } from 'node:path'
import { type Clock, type Logger, SallyportError } from '../../core/index.ts'
import { LocalStore } from '../local-store.ts'
import { defaultHistoryLimits, type HistoryLimits } from '../mvcc/history.ts'
import type { Mirror } from '../mvcc/mvcc.ts'
import { StoreDamaged } from '../store.ts'
import {
  type CheckpointRule,
  Checkpoints,
  Durability,
  defaultCheckpointRule,
} from './checkpoints.ts'
import { type LostValue, lostValues, writeFailure } from './damage.ts'
import { checkpointName, fileHeaderLength, formatVersion, segmentName } from './file-format.ts'
import { type FileOps, nodeFiles, openDataFile } from './file-system.ts'
import { Journal, placeIn, repairTail } from './journal.ts'
import { ManifestKeeper, readFormatVersion, readManifest, writeManifest } from './manifest.ts'
import { prepareDirectory, removeLeftovers } from './prepare-directory.ts'
import { isCurrentValue, readStore, type StoreContent } from './read-store.ts'
import { SegmentWriter } from './segment-writer.ts'
import { readMarker, readVersion1Place, SyncedMarker, writeMarker } from './synced-marker.ts'

/** A store in files of one directory. */
export class EmbeddedStore extends LocalStore {
  readonly #durability: Durability
  #closing: Promise<void> | undefined

  constructor(mirror: Mirror, durability: Durability) {
    super(
      mirror,
      (events) => durability.persist(events),
      () => durability.compact(),
    )
    this.#durability = durability
  }

  /** Why the last write failed, as long as no later one has succeeded; for health checks. */
  get failure(): unknown {
    return this.#durability.failure
  }

  override close(): Promise<void> {
    this.#closing ??= super.close().then(() => this.#durability.close())
    return this.#closing
  }
}

/**
 * Rewrites a store of one version as the next. It must leave either the old manifest with all its
 * files or the new one with all of its own, whenever it is interrupted.
 */
export type UpgradeStep = (files: FileOps, directory: string) => Promise<void>

/** In version 1 a store without a marker was usual before its first start; now it is damage. */
const fromVersion1: UpgradeStep = async (files, directory) => {
  const manifest = await readManifest(files, directory)
  if ((await readMarker(files, directory)).state !== 'valid') {
    const active = manifest.segments.at(-1) ?? 0
    const source = await openDataFile(files, join(directory, segmentName(active)), 'segment')
    const size = await source.file.size()
    await source.file.close()
    const unused = size === fileHeaderLength && manifest.segments.length === 1
    const found =
      (await readVersion1Place(files, directory)) ??
      (unused ? { sequence: active, offset: fileHeaderLength } : undefined)
    if (found) {
      const { sequence, offset } = found
      const salt = sequence === active ? source.header.salt : Buffer.alloc(16)
      const lastSequence = Math.max(sequence, active)
      await writeMarker(
        files,
        directory,
        { segment: { sequence, salt }, offset, lastSequence },
        { closed: false },
      )
    }
  }
  await writeManifest(files, directory, manifest)
}

/** Step by the version that it starts from. */
const upgradeSteps: ReadonlyMap<number, UpgradeStep> = new Map([[1, fromVersion1]])

/** Brings an older store to the current format; refuses a newer one. */
async function upgradeStore(
  files: FileOps,
  directory: string,
  steps: ReadonlyMap<number, UpgradeStep>,
): Promise<{ readonly from: number }> {
  const from = await readFormatVersion(files, directory)
  for (let version = from; version < formatVersion; ) {
    const step = steps.get(version)
    if (step === undefined) throw tooOld(directory, version)
    await step(files, directory)
    const reached = await readFormatVersion(files, directory)
    if (reached <= version) throw tooOld(directory, reached)
    version = reached
  }
  return { from }
}

function tooOld(directory: string, version: number): StoreDamaged {
  return new StoreDamaged(
    `${directory} has store format version ${version}, which this Sallyport can no longer upgrade: ` +
      'open it once with an older release',
    { file: directory, offset: 0 },
  )
}

/** Where and how a store is kept. */
export interface EmbeddedStoreOptions {
  readonly directory: string
  readonly clock: Clock
  readonly log: Logger
  readonly history?: HistoryLimits
}

/** What only tests replace. */
export interface EmbeddedStoreSystem {
  readonly files: FileOps
  readonly upgrades: ReadonlyMap<number, UpgradeStep>
  readonly checkpointRule: CheckpointRule
}

/** What a store is opened with outside of tests. */
export const realSystem: EmbeddedStoreSystem = {
  files: nodeFiles,
  upgrades: upgradeSteps,
  checkpointRule: defaultCheckpointRule,
}

/**
 * Opens the store in a directory, or makes one if that is empty or not there. Whoever opens it must
 * hold the lock of the data directory: two writers would destroy it.
 */
export async function openEmbeddedStore(
  options: EmbeddedStoreOptions,
  system: EmbeddedStoreSystem = realSystem,
): Promise<EmbeddedStore> {
  const { directory, clock, log } = options
  const started = clock.monotonic()
  try {
    await prepareDirectory(system.files, directory)
    const { from } = await upgradeStore(system.files, directory, system.upgrades)
    const content = await readContent(options, system.files)
    const store = await openForWriting(options, system, content)
    const durationMs = Math.round(clock.monotonic() - started)
    log.info({ directory, revision: store.revision, version: from, durationMs }, 'store opened')
    return store
  } catch (error) {
    if (error instanceof SallyportError) throw error
    throw writeFailure(directory, error, 'the store was not opened')
  }
}

/** Throws `StoreDamaged` if the value of a current object is lost: the operator decides. */
async function readContent(options: EmbeddedStoreOptions, files: FileOps): Promise<StoreContent> {
  const { directory, log, history = defaultHistoryLimits } = options
  const lost: LostValue[] = []
  const content = await readStore({
    files,
    directory,
    limits: history,
    onSinkFailure: (err) => log.error({ err }, 'watch sink failed'),
    onLostValue: (value) => {
      const { record, path, offset } = value
      log.error({ key: record.key, file: path, offset }, 'a stored value fails its checksum')
      lost.push(value)
    },
  })
  const [first, ...others] = lost.filter((value) => isCurrentValue(value, content.mirror))
  if (first) throw lostValues([first, ...others], directory)
  return content
}

async function openForWriting(
  options: EmbeddedStoreOptions,
  { files, checkpointRule }: EmbeddedStoreSystem,
  content: StoreContent,
): Promise<EmbeddedStore> {
  const { directory, clock, log } = options
  const { mirror, manifest: known, active } = content
  // A manifest that was only just put in place may not be there after a loss of power.
  await files.syncDirectory(directory)
  await repairTail(files, content, log)
  const needed = new Set(known.segments.map(segmentName))
  if (known.checkpoint !== undefined) needed.add(checkpointName(known.checkpoint))
  await removeLeftovers(files, directory, needed)
  const segment = await SegmentWriter.resume(files, directory, active.header, active.offset)
  const opening = SyncedMarker.open(files, directory, placeIn(segment))
  const marker = await opening.catch(async (error: unknown) => {
    await segment.close()
    throw error
  })
  const manifest = new ManifestKeeper(files, directory, known)
  const parts = { files, directory, manifest, marker, mirror, clock, log }
  const journal = new Journal(segment, content.journalBytes - segment.end, parts)
  const checkpoints = new Checkpoints({ ...parts, journal, isWorthwhile: checkpointRule })
  return new EmbeddedStore(mirror, new Durability({ directory, mirror, journal, checkpoints, log }))
}
