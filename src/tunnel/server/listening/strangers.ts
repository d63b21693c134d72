import { plainAddress, sourceOf } from '../../addresses/index.ts'
import { ConnectionLimit, type SparseLog } from '../../ports/index.ts'

const mostStrangers = 1_000
const why = 'it did not prove who it is: no TLS, or a certificate that is not trusted here'

/** The connections of a port that have not proven yet who they are; those that end like that are told as refused. */
export const strangersAt = (whom: 'agent' | 'client', log: SparseLog): ConnectionLimit =>
  new ConnectionLimit(mostStrangers, {
    dropped: () =>
      log.warn('crowd', { limit: mostStrangers }, `too many wait to be known as ${whom}s`),
    left: ({ bytesRead }, from) => {
      // Load balancers knock without a word.
      if (bytesRead > 0)
        log.warn(sourceOf(from), { from: plainAddress(from), why }, `${whom} refused`)
    },
  })
