const named: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}

// Go prints letters, marks, numbers, punctuation, symbols and the plain space as they are.
const unprintable = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu

function escaped(character: string): string {
  const known = named[character]
  if (known !== undefined) return known
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  if (code < 0x80) return `\\x${hex.padStart(2, '0')}`
  return code > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`
}

/** A string in Go's quotes (`%q`), as Kubernetes shows it in messages. */
export const goQuote = (text: string): string => `"${text.replace(unprintable, escaped)}"`

/** No message, response or log line repeats more of what a peer sent. */
const maxQuotedCharacters = 100

/** The beginning of a peer's text, for fields of log lines. */
export const excerpt = (text: string): string =>
  text.length <= maxQuotedCharacters ? text : `${text.slice(0, maxQuotedCharacters)}...`

/** The beginning of a peer's text in Go's quotes, for messages and responses. */
export const quotePeer = (text = ''): string => goQuote(excerpt(text))

/** A list of strings in Go's quotes: `["a" "b"]`. */
export const goQuoteList = (texts: readonly string[]): string => `[${texts.map(goQuote).join(' ')}]`

const unprintable_visibleText = /[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\t\n]/gu
const breaks = /[\t\n\u2028\u2029]/g

const codePoint = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/**
 * A text of somebody else as a terminal may show it: what would command the terminal, or turn the
 * direction of reading, stands as U+001B and so on, as kubectl shows it. Tabs and line breaks stay.
 */
export const visibleText = (text: string): string =>
  text.replaceAll('\r\n', '\n').replace(unprintable_visibleText, codePoint)

/** The same for a text that must stay on its line. */
export const visibleLine = (text: string): string => visibleText(text).replace(breaks, codePoint)
