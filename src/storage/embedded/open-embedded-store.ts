import { type Clock, type Logger, SallyportError } from '../../core/index.ts'
import { defaultHistoryLimits, type HistoryLimits } from '../mirror/history.ts'
import { writeFailure } from './damage.ts'
import type { FileOps } from './disk/file-ops.ts'
import { nodeFiles } from './disk/node-files.ts'
import { SyncedMarker } from './disk/synced-marker.ts'
import { EmbeddedStore } from './embedded-store.ts'
import { checkpointName, segmentName } from './format/names.ts'
import { prepareDirectory, removeLeftovers } from './prepare-directory.ts'
import { readStore, type StoreContent } from './read/read-store.ts'
import { type UpgradeStep, upgradeSteps, upgradeStore } from './upgrade.ts'
import { type CheckpointRule, Checkpoints, defaultCheckpointRule } from './write/checkpoints.ts'
import { Durability } from './write/durability.ts'
import { Journal } from './write/journal.ts'
import { ManifestKeeper } from './write/manifest-keeper.ts'
import { repairTail } from './write/repair-tail.ts'
import { SegmentWriter } from './write/segment-writer.ts'

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

function readContent(options: EmbeddedStoreOptions, files: FileOps): Promise<StoreContent> {
  const { directory, log, history = defaultHistoryLimits } = options
  return readStore({
    files,
    directory,
    limits: history,
    onSinkFailure: (err) => log.error({ err }, 'watch sink failed'),
    onLostValue: ({ record, path, offset }) => {
      log.error({ key: record.key, file: path, offset }, 'a stored value fails its checksum')
    },
  })
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
  const place = { sequence: segment.sequence, offset: segment.end }
  const marker = await SyncedMarker.open(files, directory, place).catch(async (error: unknown) => {
    await segment.close()
    throw error
  })
  const manifest = new ManifestKeeper(files, directory, known)
  const parts = { files, directory, manifest, marker, mirror, clock, log }
  const journal = new Journal(segment, content.journalBytes - segment.end, parts)
  const checkpoints = new Checkpoints({ ...parts, journal, isWorthwhile: checkpointRule })
  return new EmbeddedStore(mirror, new Durability({ directory, mirror, journal, checkpoints, log }))
}
