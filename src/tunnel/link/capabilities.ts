import type { Capability } from './link.ts'

/** The metadata name under which both ends say what they can do beyond Konnectivity's protocol. */
export const capabilityHeader = 'x-knp-ext'

const version = 'v1'
const known: readonly Capability[] = ['rdial', 'credit', 'halfclose']

/** Everything this version can do. */
export const allCapabilities: readonly Capability[] = known

/** The header's value for these capabilities. */
export const formatCapabilities = (capabilities: Iterable<Capability>): string =>
  `${version}; ${[...capabilities].join(', ')}`

/** What the other end can do; anything unreadable counts as nothing. */
export function parseCapabilities(values: readonly string[] = []): ReadonlySet<Capability> {
  const [value, ...others] = values
  if (value === undefined || others.length > 0) return new Set()
  const [said, list = ''] = value.split(';').map((part) => part.trim())
  if (said !== version) return new Set()
  const names = new Set(list.split(',').map((name) => name.trim()))
  return new Set(known.filter((capability) => names.has(capability)))
}

/** What both ends can do. */
export const agreed = (
  ours: Iterable<Capability>,
  theirs: ReadonlySet<Capability>,
): ReadonlySet<Capability> => new Set([...ours].filter((capability) => theirs.has(capability)))
