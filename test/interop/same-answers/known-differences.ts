import type { Difference } from './compare.ts'
import { everywhere } from './known/everywhere.ts'
import type { KnownDifference } from './known/known-difference.ts'
import { objects } from './known/objects.ts'
import { protocol } from './known/protocol.ts'
import { words } from './known/words.ts'

/** Every purposeful difference between a real kube-apiserver and ours. */
export const knownDifferences: readonly KnownDifference[] = [
  ...everywhere,
  ...objects,
  ...protocol,
  ...words,
]

/** The first entry that a difference falls under. */
export const reasonFor = (difference: Difference): KnownDifference | undefined =>
  knownDifferences.find(({ matches }) => matches(difference))
