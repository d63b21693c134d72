import { type TunnelAgentOptions, tunnelAgentOptions } from './agent-options.ts'

const propertyOf = (name: string): string =>
  name.replaceAll(/-([a-z\d])/g, (_, letter: string) => letter.toUpperCase())

/** Options for an agent that another program runs: what is not given has its default. */
export function tunnelAgentOptionValues(given: Partial<TunnelAgentOptions>): TunnelAgentOptions {
  const defaults = Object.entries(tunnelAgentOptions).map(([name, declaration]) => {
    const isList = 'repeatable' in declaration
    const fallback = 'default' in declaration ? declaration.default : undefined
    return [propertyOf(name), fallback ?? (isList ? [] : undefined)] as const
  })
  // Every option has a value of its declared type now.
  return { ...(Object.fromEntries(defaults) as unknown as TunnelAgentOptions), ...given }
}
