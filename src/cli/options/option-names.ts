import type { OptionDeclaration } from '../../core/index.ts'

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

/** How many letters must be added, dropped or changed to make `a` into `b`. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_none, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}
