import { randomInt } from 'node:crypto'

// The alphabet that Kubernetes uses for generated names: no vowels, no look-alikes.
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789'
const suffixLength = 5
const maxNameLength = 63

/** A name that begins with `base` and ends by chance. */
export function generatedName(base: string): string {
  let name = base.slice(0, maxNameLength - suffixLength)
  for (let i = 0; i < suffixLength; i++) name += suffixAlphabet[randomInt(suffixAlphabet.length)]
  return name
}
