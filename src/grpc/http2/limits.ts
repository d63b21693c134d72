/** Frames of this size save headers between two ends of ours; Go sends 16 KiB in any case. */
export const maxFrameBytes = 1024 * 1024
/** The connection's receive window while any of its streams is read; the streams have their own. */
export const openWindowBytes = 256 * 1024 * 1024

/**
 * Frames other than DATA that wait to be written: responses, trailers, resets, acknowledgements, window updates. Above
 * either limit nothing more is read from the peer. DATA is not counted: two ends that send as fast as they can must not
 * stop reading because of it, or neither would ever go on.
 */
export const maxQueuedBytes = 64 * 1024
export const maxQueuedFrames = 1_000
/**
 * Bytes that wait for the socket above which DATA stays in its stream. A peer that opens its window byte by byte would
 * otherwise cut the same bytes into a frame each; so they leave in long frames once the peer reads again.
 */
export const maxSocketBytes = 256 * 1024
/** How long a full queue may stand still before the connection is destroyed. */
export const maxFullQueueMs = 30_000

/** What costs the peer little and this end something is allowed this often within `ratePeriodMs`. */
export const ratePeriodMs = 10_000
export const maxResets = 2_000
export const maxIdlePings = 1_000
export const maxSettings = 100
/** Requests refused and streams reset by this end (CVE-2025-8671). */
export const maxRefusals = 100
/** Header fields after decompression; 4000 requests a second with usual headers. */
export const maxDecodedHeaderBytes = 16 * 1024 * 1024

/** What the peer's HPACK encoder may remember; HTTP/2's default. */
export const maxTableBytes = 4_096
/** One block of header fields after decompression, and before. */
export const maxHeaderListBytes = 64 * 1024
export const maxBlockBytes = 64 * 1024
export const maxBlockPieces = 16

/** A frame that has to be collected before it can be understood. */
export const maxCollectedBytes = 64 * 1024

/** How long the last frames may take to leave. */
export const closeGraceMs = 2_000
