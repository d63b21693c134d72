/** From this share of a limit on, writers are warned and the log has a line. */
export const warningRatio = 0.8

/** How far they may go beyond the limits of the store: they keep a full cluster running. Nodes leave room for administrators. */
export const storeReserve = { administrators: 1.1, nodes: 1.05 } as const

/** Certificate signing requests that one user may have stored. They are removed an hour after they were decided. */
export const maxRequestsPerUser = { objects: 4_000, bytes: 16 * 1024 * 1024 } as const

/** A user with no more requests than this is refused only when twice the limit of all requests is stored. */
export const fewRequests = { objects: 20, bytes: 64 * 1024 } as const

/** Endpoints and EndpointSlices that the server may store for each object that users may have in the namespace. */
export const derivedObjectsRatio = 4
