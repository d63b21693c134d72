const shown = 3

/** The first items, and how many more there are. */
export function withMore(items: readonly string[]): string {
  const text = items.slice(0, shown).join(',')
  return items.length > shown ? `${text} + ${items.length - shown} more...` : text
}
