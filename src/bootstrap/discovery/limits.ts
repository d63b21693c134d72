/** How long discovery, and joining, retries while a failure may be temporary. */
export const defaultTimeoutMs = 5 * 60_000

/** How long discovery retries while the cluster responds but does not know the token. */
export const defaultTokenTimeoutMs = 30_000

/** How long a client waits for the approval of its certificate. */
export const defaultApprovalTimeoutMs = 60 * 60_000

/** For a single request. */
export const maxRequestMs = 10_000

/** Larger than any document of a cluster. */
export const maxDocumentBytes = 1024 * 1024

/** Redirects of `--cluster-info-url`. */
export const maxRedirects = 5

/** Characters of a detached signature. */
export const maxSignatureLength = 4096

/** Pause after the first failed attempt; doubled after each further one. */
export const minRetryPauseMs = 1_000

/** Pause between two attempts. */
export const maxRetryPauseMs = 5_000
