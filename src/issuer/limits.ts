/** Lifetime of a token without a requested one, as in Kubernetes. */
export const defaultLifetimeSeconds = 3_600

/** Minimum lifetime that can be requested, as in Kubernetes. */
export const minLifetimeSeconds = 600

/** Maximum lifetime that can be requested, as in Kubernetes. */
export const maxLifetimeSeconds = 2 ** 32

/** Accepted clock skew between this server and the issuer of a token. */
export const defaultLeewaySeconds = 60

/** For how long relying parties may cache the documents, as in Kubernetes. */
export const documentMaxAgeSeconds = 3_600

/** Keys that are published at the same time; some relying parties read no more. */
export const maxKeys = 100

/** Keys that are tried for a token without `kid`: each costs CPU time, and any client can send such tokens. */
export const maxKeysTried = 10

/** For each request of the doctor. */
export const maxProbeMs = 10_000

/** Of a document that the doctor inspects. */
export const maxProbeBytes = 1024 * 1024

/** For each document that is fetched to be published. */
export const maxPublishFetchMs = 10_000

/** Of a document that is fetched to be published. */
export const maxPublishedBytes = 256 * 1024

/** Of the server of published documents. */
export const maxDocumentConnections = 1_000
