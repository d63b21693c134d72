import type { Observation } from './contest.ts'
import { type KnownDifference, knownDifferences } from './known-differences.ts'

/** Both sides of a case in which they are not the same. */
export interface Difference {
  readonly name: string
  readonly version: string
  readonly theirs: Observation
  readonly ours: Observation
}

const compared = ['outcome', 'runs', 'execInfo', 'requests', 'authorization', 'peer'] as const

/** The parts in which two observations differ. */
export const differingParts = (theirs: Observation, ours: Observation): string[] =>
  compared.filter((part) => theirs[part] !== ours[part])

/** The entry that explains a difference: it names the case, and both did what it says. */
export function reasonFor({ name, theirs, ours }: Difference): KnownDifference | undefined {
  return knownDifferences.find(
    (known) => known.cases.includes(name) && fits(theirs, known.theirs) && fits(ours, known.ours),
  )
}

const fits = (observation: Observation, part: Partial<Observation>): boolean =>
  compared.every((name) => part[name] === undefined || part[name] === observation[name])

/** A difference in words. */
export function describeDifference({ name, version, theirs, ours }: Difference): string {
  const lines = differingParts(theirs, ours).map((part) => {
    const [a, b] = [theirs, ours].map((side) => JSON.stringify(side[part as keyof Observation]))
    return `  ${part}: kubectl ${a}, ours ${b}`
  })
  return [`${name} (kubectl ${version})`, ...lines, `  ${theirs.words}`, `  ${ours.words}`].join(
    '\n',
  )
}
