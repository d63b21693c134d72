/** What identifies an element of a list: its merge key's value, or a scalar itself. */
export type Identity = (element: unknown) => unknown

/** Position of each identity; the first one counts. */
function positions(list: readonly unknown[], identity: Identity): Map<unknown, number> {
  const found = new Map<unknown, number>()
  for (const [index, element] of list.entries()) {
    const id = identity(element)
    if (!found.has(id)) found.set(id, index)
  }
  return found
}

const sortedBy = (list: unknown[], order: Map<unknown, number>, identity: Identity): unknown[] =>
  list.toSorted(
    (a, b) => (order.get(identity(a)) ?? order.size) - (order.get(identity(b)) ?? order.size),
  )

/**
 * Puts a merged list in order. Elements that the client named come in the client's order; the others
 * keep the order they had; each of the others goes before the first named one that it preceded.
 */
export function inOrder(
  merged: readonly unknown[],
  orders: { readonly client: readonly unknown[]; readonly server: readonly unknown[] },
  identity: Identity,
): unknown[] {
  const clientOrder = positions(orders.client, identity)
  const serverOrder = positions(orders.server, identity)
  const isNamed = (element: unknown): boolean => clientOrder.has(identity(element))
  const named = sortedBy(merged.filter(isNamed), clientOrder, identity)
  const others = sortedBy(
    merged.filter((element) => !isNamed(element)),
    serverOrder,
    identity,
  )
  const precedes = (a: unknown, b: unknown): boolean => {
    const [first, second] = [serverOrder.get(identity(a)), serverOrder.get(identity(b))]
    return first !== undefined && second !== undefined && first < second
  }
  const result: unknown[] = []
  let next = 0
  for (const element of named) {
    while (next < others.length && precedes(others[next], element)) {
      result.push(others[next])
      next += 1
    }
    result.push(element)
  }
  return [...result, ...others.slice(next)]
}
