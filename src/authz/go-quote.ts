const short: Readonly<Record<string, string>> = {
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

const special = /["\\\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu

function escaped(character: string): string {
  const known = short[character]
  if (known !== undefined) return known
  const code = character.codePointAt(0) ?? 0
  const hex = code.toString(16)
  if (code < 0x80) return `\\x${hex.padStart(2, '0')}`
  return code > 0xffff ? `\\U${hex.padStart(8, '0')}` : `\\u${hex.padStart(4, '0')}`
}

/** A string in quotes as Kubernetes' messages show it: in Go's `%q` form. */
export const quote = (text: string): string => `"${text.replace(special, escaped)}"`

/** A list of strings in Go's `%q` form: `["a" "b"]`. */
export const quoteList = (texts: readonly string[]): string => `[${texts.map(quote).join(' ')}]`
