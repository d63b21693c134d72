import { StoreDamaged } from '../contract.ts'
import type { FileOps } from './disk/file-ops.ts'
import { readFormatVersion } from './disk/manifest.ts'
import { formatVersion } from './format/file-header.ts'

/**
 * Rewrites a store of one version as the next. It must leave either the old manifest with all its
 * files or the new one with all of its own, whenever it is interrupted.
 */
export type UpgradeStep = (files: FileOps, directory: string) => Promise<void>

/** Step by the version that it starts from. Version 1 is the first one, so there are none yet. */
export const upgradeSteps: ReadonlyMap<number, UpgradeStep> = new Map()

/** Brings an older store to the current format; refuses a newer one. */
export async function upgradeStore(
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
