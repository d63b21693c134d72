import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

const fileKinds = { segment: 1, checkpoint: 2, backup: 3 } as const

/** A kind of file that holds batches. */
export type FileKind = keyof typeof fileKinds

/** The first bytes of a file that holds batches. */
export interface FileHeader {
  readonly kind: FileKind
  /** Segments and checkpoints: the number in the file's name. */
  readonly sequence: number
  /** Segment: the revision before its first change. Checkpoint and backup: that of its content. */
  readonly revision: number
  /** Checkpoint: the oldest revision that its history reaches. Otherwise as `revision`. */
  readonly floor: number
  /** Ties the batches to this file. */
  readonly salt: Buffer
}

/** The version of the store's format that this code writes: which files there are and what they prove. */
export const formatVersion = 2
/** The version of the files that hold batches. */
const dataFileVersion = 1
/** Bytes from the start of a file to its first batch. */
export const fileHeaderLength = 64

/*
 * Layout, little-endian:
 *   0 magic  8 u16 format version  10 u16 kind  12 u32 sequence  16 f64 revision  24 f64 floor
 *  32 16 bytes salt  48 unused  60 u32 checksum of all before
 */
const magic = Buffer.from('SALLYPRT', 'latin1')

/** A header with a fresh salt. */
export function newFileHeader(fields: Omit<FileHeader, 'salt'>): FileHeader {
  return { ...fields, salt: randomBytes(16) }
}

/** The header as bytes. */
export function encodeFileHeader(header: FileHeader): Buffer {
  const bytes = Buffer.alloc(fileHeaderLength)
  magic.copy(bytes)
  bytes.writeUInt16LE(dataFileVersion, 8)
  bytes.writeUInt16LE(fileKinds[header.kind], 10)
  bytes.writeUInt32LE(header.sequence, 12)
  bytes.writeDoubleLE(header.revision, 16)
  bytes.writeDoubleLE(header.floor, 24)
  header.salt.copy(bytes, 32)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 60)), 60)
  return bytes
}

/** Reads a header back; a string says what is wrong with it. */
export function decodeFileHeader(bytes: Buffer, kind: FileKind): FileHeader | string {
  if (bytes.length < fileHeaderLength || bytes.compare(magic, 0, 8, 0, 8) !== 0) {
    return `this is not a Sallyport ${kind} file`
  }
  if (crc32(bytes.subarray(0, 60)) !== bytes.readUInt32LE(60)) {
    return 'the file header fails its checksum'
  }
  const version = bytes.readUInt16LE(8)
  if (version !== dataFileVersion) {
    return `the file has format version ${version}, this Sallyport knows version ${dataFileVersion}`
  }
  if (bytes.readUInt16LE(10) !== fileKinds[kind]) return `this is not a Sallyport ${kind} file`
  return {
    kind,
    sequence: bytes.readUInt32LE(12),
    revision: bytes.readDoubleLE(16),
    floor: bytes.readDoubleLE(24),
    salt: Buffer.from(bytes.subarray(32, 48)),
  }
}

/** The file that says which others make up the store. */
export const manifestName = 'MANIFEST'
/** The manifest while it is being written. */
export const newManifestName = 'MANIFEST.new'
/** Says up to where the journal is known to be on disk. */
export const markerName = 'synced'
/** The marker while it is being replaced. */
export const newMarkerName = 'synced.new'

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
