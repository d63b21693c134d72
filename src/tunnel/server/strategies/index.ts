import { ByHost } from './by-host.ts'
import { ByRange } from './by-range.ts'
import { LeastLoadedAgent } from './least-loaded-agent.ts'
import { RandomAgent } from './random-agent.ts'
import type { Strategy } from './strategy.ts'
import type { StrategyName } from './strategy-names.ts'

export type { Strategy } from './strategy.ts'
export type { StrategyName } from './strategy-names.ts'

/** Makes a strategy by its name; `random` gives numbers from 0 to below 1. */
export function createStrategy(name: StrategyName, random: () => number): Strategy {
  switch (name) {
    case 'default':
      return new RandomAgent(() => true, random)
    case 'defaultRoute':
      return new RandomAgent((session) => session.identifiers.isDefaultRoute, random)
    case 'destHost':
      return new ByHost()
    case 'cidr':
      return new ByRange()
    case 'least-loaded':
      return new LeastLoadedAgent()
  }
}
