/** What a single request may bring along before it is processed. */
export interface RequestLimits {
  readonly maxUrlLength: number
  readonly maxHeaderCount: number
  readonly maxHeaderBytes: number
  readonly maxBodyBytes: number
  /** A client with more than `minWatchedBytes` to read must read something within this time. */
  readonly maxWriteStallMs: number
}

/** Enough for every stock client. */
export const defaultRequestLimits: RequestLimits = {
  maxUrlLength: 16 * 1024,
  maxHeaderCount: 1_000,
  maxHeaderBytes: 64 * 1024,
  maxBodyBytes: 3 * 2 ** 20,
  maxWriteStallMs: 20_000,
}

/** Smaller responses fit into the buffers of the system; their deadline is that of the request. */
export const minWatchedBytes = 64 * 1024

/** An identity that was proven longer ago is proven again before it is used. */
export const maxIdentityAgeMs = 100

/** A response that is signed is kept in memory until its end. */
export const maxSignedBytes = 2 ** 20

/** Of the origins that browsers have proven to be this server's: kept in memory, for as long as a page may be open. */
export const maxOriginUsers = 1_000
export const maxOriginsPerUser = 8
export const maxOriginLength = 256
export const maxOriginAgeMs = 12 * 3_600_000
/** Of an origin that an error message quotes. */
export const maxQuotedOriginLength = 100

/** How many requests may be under way at once, and what slow clients may cost. */
export interface FairnessLimits {
  /** Of users; service accounts have as many of their own, and anonymous clients `anonymousShare` of that. */
  readonly readOnly: number
  readonly mutating: number
  /** Watches and streams, which hold little but hold it long. */
  readonly longRunning: number
  /** The part of each of these that one user may hold: 0.25 is a quarter. */
  readonly userShare: number
  readonly anonymousShare: number
  /** How many requests of one user may wait, and of all users together. */
  readonly queuedPerUser: number
  readonly queuedInTotal: number
  readonly maxQueueMs: number
  /** Bytes of bodies on their way in and of responses on their way out. */
  readonly maxHeldBytesPerUser: number
  readonly maxHeldBytesInTotal: number
}

/** The numbers of kube-apiserver where it has one. */
export const defaultFairnessLimits: FairnessLimits = {
  readOnly: 400,
  mutating: 200,
  longRunning: 10_000,
  userShare: 0.25,
  anonymousShare: 0.05,
  queuedPerUser: 128,
  queuedInTotal: 4_096,
  maxQueueMs: 15_000,
  maxHeldBytesPerUser: 64 * 2 ** 20,
  maxHeldBytesInTotal: 256 * 2 ** 20,
}

/** Objects of a request without any byte of a body; they count as well. */
export const minHeldBytes = 4 * 1024
/** Users who hold nothing are kept up to this number: most send the next request at once. */
export const maxIdleHolders = 1_000

/** How CPU time is shared. */
export interface CpuLimits {
  /** CPU time that a user may be ahead of its share before requests of this user are rejected. */
  readonly burstMs: number
  /** No debt grows beyond this, so that no user is rejected for longer. */
  readonly maxDebtMs: number
  /** A user without a charge for this long is not active: the others share its part. */
  readonly activeMs: number
  /** The event loop counts as saturated when it is busy for this part of the time. */
  readonly saturation: number
}

export const defaultCpuLimits: CpuLimits = {
  burstMs: 250,
  maxDebtMs: 5_000,
  activeMs: 2_000,
  saturation: 0.9,
}

/** What may wait to be written to the audit log before events are dropped. */
export const maxBufferedAuditBytes = 16 * 2 ** 20
export const defaultAuditFlushBytes = 64 * 2 ** 10
export const defaultAuditFlushMs = 1_000
export const maxUserAgentLength = 1_024
/** Of strings whose escaped form is kept. */
export const maxKnownWords = 1_000
export const maxWordLength = 128

/** For one health check. */
export const defaultHealthCheckTimeoutMs = 5_000

/** Enough for the rendered lists of several thousand objects. */
export const maxListCacheBytes = 64 * 2 ** 20

/** For requests to be recorded after their connections have been closed. */
export const maxRecordMs = 1_000

/** For the last writes of controllers. */
export const maxControllerStopMs = 1_000

/** For a TCP connection to a Pod, Service or node. */
export const defaultDialTimeoutMs = 10_000

/** For a dial through the tunnel. */
export const maxTunnelDialMs = 30_000
export const defaultTunnelKeepaliveMs = 30_000
/** Of the connections that the API server accepts from one address: other clients there must get through as well. */
export const maxNodeConnectionShare = 0.8

/** Of the issuer's options. */
export const minTokenLifetimeMs = 3_600_000
export const maxTokenLifetimeMs = 2 ** 32 * 1000
export const minKeyRotationMs = 24 * 3_600_000

/** Certificates of the old CA that are recorded while a CA is replaced. */
export const maxRecordedCertificates = 1_000
