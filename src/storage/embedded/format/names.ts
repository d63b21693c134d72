/** The file that says which others make up the store. */
export const manifestName = 'MANIFEST'
/** The manifest while it is being written. */
export const newManifestName = 'MANIFEST.new'
/** Says up to where the journal is known to be on disk. */
export const markerName = 'synced'

/** The name of a part of the journal. */
export const segmentName = (sequence: number): string => `segment-${padded(sequence)}.log`

/** The name of a checkpoint. */
export const checkpointName = (sequence: number): string => `checkpoint-${padded(sequence)}.dat`

/** The number in the name of a segment or checkpoint; `undefined` for any other name. */
export function sequenceOf(name: string): number | undefined {
  const match = /^(?:segment-(\d{10})\.log|checkpoint-(\d{10})\.dat)$/.exec(name)
  return match ? Number(match[1] ?? match[2]) : undefined
}

const padded = (sequence: number): string => String(sequence).padStart(10, '0')
