import { WrongUsage } from '../../core/index.ts'

/** Throws WrongUsage with everything that is wrong with some options, if anything is. */
export function refuseProblems(problems: readonly string[]): void {
  const [first] = problems
  if (first === undefined) return
  if (problems.length === 1) throw new WrongUsage(first)
  const lines = problems.map((problem) => `  - ${problem}`)
  throw new WrongUsage(['several things are wrong:', ...lines].join('\n'))
}
