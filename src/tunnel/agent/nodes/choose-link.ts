import type { Link } from '../../link/index.ts'

/** One link for a new connection: a random one that can dial for us, and of those that stay if there is any. */
export function chooseLink(
  links: readonly Link[],
  tried: ReadonlySet<Link>,
  random: () => number,
): Link | undefined {
  const able = links.filter((link) => link.capabilities.has('rdial') && !tried.has(link))
  const staying = able.filter((link) => !link.isDraining)
  const candidates = staying.length > 0 ? staying : able
  return candidates[Math.floor(random() * candidates.length)]
}
