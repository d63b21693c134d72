import type { Contestant, Name } from './contestant.ts'
import { type Figure, figureOf } from './figure.ts'
import { type LoadResult, runLoad } from './load.ts'
import type { Scale, Scenario } from './scenarios.ts'

/** Runs a scenario in turn on every server, several times, and returns its figures. */
export async function measureScenario(
  scenario: Scenario,
  servers: readonly Contestant[],
  scale: Scale,
): Promise<Figure[]> {
  const taking = servers.filter(({ name }) => name !== 'floor' || scenario.floor === true)
  const isWatch = scenario.group === 'watch'
  for (const server of scale.settleSeconds > 0 ? taking : []) {
    await runLoad(server, [...scenario.flags, '--seconds', String(scale.settleSeconds)])
  }
  const results: Partial<Record<Name, LoadResult[]>> = {}
  for (let round = 0; round < scale.rounds; round++) {
    // Whoever comes first may find the machine in another mood than whoever comes last.
    const order = round % 2 === 0 ? taking : [...taking].reverse()
    for (const server of order) {
      const warmup = isWatch ? [] : ['--warmup', '0.5']
      const flags = [...scenario.flags, ...warmup, '--seconds', String(scale.seconds)]
      results[server.name] = [...(results[server.name] ?? []), await runLoad(server, flags)]
    }
  }
  return scenario.metrics.map(({ of, label, ...about }) => {
    const rounds: Partial<Record<Name, number[]>> = {}
    for (const { name } of taking) rounds[name] = results[name]?.map((result) => result[of]) ?? []
    return figureOf({ ...about, name: [scenario.name, label].filter(Boolean).join(': ') }, rounds)
  })
}
