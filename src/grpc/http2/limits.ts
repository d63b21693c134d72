/** Receive window of the connection while one of its streams is read; each stream has its own window. */
export const openWindowBytes = 256 * 1024 * 1024

/**
 * Queued frames other than DATA: responses, trailers, resets, acknowledgements, window updates. Above either limit nothing
 * more is read from the peer. DATA does not count: two peers that send as fast as they can would both stop reading.
 */
export const maxQueuedBytes = 64 * 1024
export const maxQueuedFrames = 1_000
/**
 * Bytes queued for the socket above which DATA stays in its stream. A peer that opens its window byte by byte would
 * otherwise get each byte in a frame of its own; so the bytes leave in long frames once the peer reads again.
 */
export const maxSocketBytes = 256 * 1024
/** How long a full queue may make no progress before the connection is destroyed. */
export const maxFullQueueMs = 30_000

/** Limits for what costs the peer little and us something, per `ratePeriodMs`. */
export const ratePeriodMs = 10_000
/** RST_STREAM frames of the peer (CVE-2023-44487). */
export const maxResets = 2_000
export const maxIdlePings = 1_000
export const maxSettings = 100
/** Requests refused and streams reset by us because of the peer (CVE-2025-8671). */
export const maxRefusals = 100
/** Header fields after decompression; 4000 requests a second with usual headers. */
export const maxDecodedHeaderBytes = 16 * 1024 * 1024

/** Streams reset by us whose last frames may still be in flight. */
export const maxRememberedResets = 4_096

/** Dynamic table of the peer's HPACK encoder; the default of HTTP/2. */
export const maxTableBytes = 4_096
/** A field section after decompression, and its block before. */
export const maxHeaderListBytes = 64 * 1024
export const maxBlockBytes = 64 * 1024
export const maxBlockFrames = 16

/** A frame other than DATA: it is collected before it is processed. */
export const maxControlFrameBytes = 64 * 1024

/** How long the last frames may take to leave. */
export const closeGraceMs = 2_000
