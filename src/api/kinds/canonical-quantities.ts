import { isRecord } from '../../core/index.ts'
import { parseQuantity } from '../validation/quantity.ts'
import type { Fields } from './fields.ts'

/** Puts every amount of the map at `key` into the form that Kubernetes stores. */
export function canonicalQuantities(parent: Fields, key: string): void {
  const amounts = parent[key]
  if (!isRecord(amounts)) return
  parent[key] = Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => {
      const isScalar = typeof amount === 'string' || typeof amount === 'number'
      return [name, (isScalar && parseQuantity(amount)?.canonical) || amount]
    }),
  )
}
