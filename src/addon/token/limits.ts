/** Accepted clock skew between API server and Pod. */
export const defaultLeewaySeconds = 10

/** Lifetime of an accepted token. */
export const defaultMaxLifetimeSeconds = 300

/** Verified tokens in the cache of a verifier. */
export const defaultMaxCachedTokens = 10_000

/** How long a token is cached as it is: a page loads with dozens of requests that send the same one. */
export const recentTokenMs = 2_000

/** For one request for keys, by handshake or JWK set. */
export const maxKeyLoadMs = 5_000

/** Of a JWK set. */
export const maxJwksBytes = 64 * 1024

/** Time between two periodic requests for keys. */
export const keyRefreshMs = 60_000

/** Time between two requests for keys because of unknown key ids, or while there are no keys. */
export const minKeyCooldownMs = 5_000

/** How long a key is trusted after it was last published: its tokens live on, and an address may have several servers. */
export const keyGraceMs = 300_000

/** How long keys are trusted while none can be fetched. */
export const maxKeyStaleMs = 3_600_000

/** Certificates in the `x5c` of a token. */
export const maxX5cCertificates = 4

/** Certificate chains whose verification is cached; a cluster has a handful of API servers. */
export const maxX5cChains = 16

/** How long a verified chain is cached: a CA above it may expire before it. */
export const maxX5cAgeMs = 10 * 60_000
