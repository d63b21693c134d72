const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\t\n]/gu
const breaks = /[\t\n\u2028\u2029]/g

const codePoint = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/**
 * A text of somebody else as a terminal may show it: what would command the terminal, or turn the
 * direction of reading, stands as U+001B and so on, as kubectl shows it. Tabs and line breaks stay.
 */
export const visibleText = (text: string): string =>
  text.replaceAll('\r\n', '\n').replace(unprintable, codePoint)

/** The same for a text that must stay on its line. */
export const visibleLine = (text: string): string => visibleText(text).replace(breaks, codePoint)
