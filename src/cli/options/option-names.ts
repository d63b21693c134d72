import type { OptionDeclaration } from '../../core/index.ts'
import { editDistance } from '../edit-distance.ts'

/** The property of an option in the parsed values: `secure-port` is `securePort`. */
export const propertyOf = (name: string): string =>
  name.replace(/-(.)/g, (_match, letter: string) => letter.toUpperCase())

/** The environment variable of an option. */
export const environmentOf = (name: string, declaration: OptionDeclaration): string =>
  declaration.env ?? `SALLYPORT_${name.replaceAll('-', '_').toUpperCase()}`

/** The name among `known` that was probably meant, if one is close enough. */
export function suggestion(wrong: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(wrong.length / 4)) + 1
  for (const name of known) {
    const distance = name.startsWith(wrong) && wrong.length > 2 ? 1 : editDistance(wrong, name)
    if (distance >= bestDistance) continue
    best = name
    bestDistance = distance
  }
  return best
}
