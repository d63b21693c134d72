/** The strategies by the names that `--proxy-strategies` takes; the last two are ours. */
export const strategyNames = [
  'default',
  'destHost',
  'defaultRoute',
  'cidr',
  'least-loaded',
] as const

/** The name of a strategy. */
export type StrategyName = (typeof strategyNames)[number]
