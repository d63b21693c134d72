/** From this share of a limit on, writers are warned and the log has a line. */
export const warningRatio = 0.8

/** How far administrators, nodes and the server itself may go beyond the limits of the store: they keep a full cluster running. */
export const storeReserve = 1.1

/** Certificate signing requests that one user may have stored. They are removed an hour after they were decided. */
export const maxRequestsPerUser = 4_000
