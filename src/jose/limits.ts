/** Characters of a token; those of Kubernetes have about 1200. */
export const maxTokenLength = 16 * 1024

/** Characters of a key id. */
export const maxKidLength = 1024

/** Nesting of a JSON document; recursive readers have a limited stack. */
export const maxJsonDepth = 32

/** NIST SP 800-131A: shorter RSA keys are disallowed. */
export const minRsaBits = 2048

/** Of a cache of verified tokens. */
export const defaultMaxCachedTokens = 32_768

/** Of an entry in a cache of verified tokens, whatever the expiry of its token. */
export const defaultMaxCacheAgeMs = 10_000

/** Tokens that are cached as they are, without a hash. */
export const maxRecentTokens = 256
