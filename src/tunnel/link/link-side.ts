import { destination } from '../protocol/index.ts'

/**
 * Which end of which stream a link is. An agent's stream has a `server` and an `agent`;
 * a front end's has a `gateway` (ours) and a `front-end`, which alone dials, and only once.
 */
export type LinkSide = 'server' | 'agent' | 'gateway' | 'front-end'

/** The `dest` of connections that we dial, and of those that the other end dials; absent where that is not possible. */
export interface Directions {
  readonly outbound?: number
  readonly inbound?: number
}

/** Who may dial on a link, and how the two directions are told apart. */
export function directionsOf(side: LinkSide, hasReverseDials: boolean): Directions {
  const { unset, controlPlane } = destination
  switch (side) {
    case 'server':
      return { outbound: unset, ...(hasReverseDials && { inbound: controlPlane }) }
    case 'agent':
      return { inbound: unset, ...(hasReverseDials && { outbound: controlPlane }) }
    case 'gateway':
      return { inbound: unset }
    case 'front-end':
      return { outbound: unset }
  }
}
