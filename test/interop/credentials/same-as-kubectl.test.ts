import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildOnce } from '../../build-once.ts'
import { findKubectl, pathOrReason } from '../../support/peers.ts'
import { answerCases } from './cases/answers.ts'
import { commandCases } from './cases/command.ts'
import { lifeCases } from './cases/life.ts'
import { policyCases } from './cases/policy.ts'
import { precedenceCases } from './cases/precedence.ts'
import { sectionCases } from './cases/sections.ts'
import { standInCases } from './cases/stand-ins.ts'
import { terminalCases } from './cases/terminal.ts'
import { type Difference, describeDifference, differingParts, reasonFor } from './compare.ts'
import { Contest } from './contest.ts'
import type { ContestCase } from './contest-case.ts'
import { knownDifferences } from './known-differences.ts'

const topics: readonly (readonly [claim: string, cases: readonly ContestCase[]])[] = [
  ['interactive modes, table 2.4 [CRED-I1, CRED-E5]', terminalCases],
  ['exec sections and what plugins are told [CRED-I1, CRED-E2, CRED-E3, CRED-K4]', sectionCases],
  ['precedence of credentials, table 2.6 [CRED-I1, CRED-K6]', precedenceCases],
  ['how a command is found and run [CRED-I1, CRED-E8, CRED-S3]', commandCases],
  ['answers of plugins, table 2.8 [CRED-I1, CRED-E10, CRED-E11]', answerCases],
  ['caching, expiry and 401 [CRED-I1]', lifeCases],
  ['the fifteen stand-ins, and plugins that die [CRED-I2]', standInCases],
  ['policies for plugins [CRED-I1, CRED-E14, CRED-E15]', policyCases],
]

/** Older ones have no policies, and what takes long is asked once. */
const isForNewest = ({ policy, heavy }: ContestCase): boolean =>
  policy !== undefined || heavy === true

// The terminal is made by script(1) of util-linux; other systems have one with other options.
const terminalMaker = 'script'
const hasScript = spawnSync(terminalMaker, ['--version'], { encoding: 'utf8' }).stdout?.includes(
  'util-linux',
)
const newest = '1.36'
const kubectls = [newest, '1.33', '1.31'].flatMap((version) => {
  const kubectl = pathOrReason(findKubectl(version))
  return kubectl ? [{ version, kubectl }] : []
})
const here = kubectls[0]?.version === newest && hasScript
if (!hasScript) console.warn('skipped: cases at a terminal need script(1) of util-linux')

describe.skipIf(!here)('kubectl and ours do the same', () => {
  const seen: Difference[] = []
  let rows = 0
  let contest: Contest
  let dist: string

  beforeAll(async () => {
    dist = await buildOnce()
    contest = await Contest.open()
  })
  afterAll(async () => {
    await contest?.close()
    console.log(`${rows} rows compared, ${seen.length} of them differ`)
  })

  /** What a case shows of every kubectl that can be asked, beside ours. */
  async function differences(each: ContestCase): Promise<Difference[]> {
    const asked = isForNewest(each) ? kubectls.slice(0, 1) : kubectls
    const all = await contest.observe(each, [...asked, { dist }])
    const ours = all.at(-1)
    return asked.flatMap(({ version }, index) => {
      const theirs = all[index]
      rows++
      if (!theirs || !ours || differingParts(theirs, ours).length === 0) return []
      return [{ name: each.name, version, theirs, ours }]
    })
  }

  test.each(topics)('about %s', async (_claim, cases) => {
    const found: Difference[] = []
    for (const each of cases) found.push(...(await differences(each)))
    seen.push(...found)
    const unexplained = found.filter((difference) => !reasonFor(difference))
    expect(unexplained.map(describeDifference).join('\n')).toBe('')
  })

  test('every listed difference is still there, with every kubectl [CRED-I1]', () => {
    const listed = knownDifferences.flatMap(({ cases }) => cases)
    const differing = [...new Set(seen.map(({ name }) => name))]
    expect(differing.sort()).toEqual([...listed].sort())
    for (const version of ['1.33', '1.31'].filter((one) => kubectls.some((k) => k.version === one)))
      expect(seen.filter((one) => one.version === version).length).toBeGreaterThan(15)
  })
})
