/** How many items of a list are shown in a column. */
export const shownItems = 3

/** The first items, and how many more there are. */
export function withMore(items: readonly string[], count: number = items.length): string {
  const text = items.slice(0, shownItems).join(',')
  return count > shownItems ? `${text} + ${count - shownItems} more...` : text
}
