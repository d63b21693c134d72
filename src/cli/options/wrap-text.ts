/** Breaks `text` into lines of at most `width` characters; a longer word gets a line of its own. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  if (line !== '') lines.push(line)
  return lines
}

/** Pairs as two columns, the second wrapped; a first part that is too long pushes the second down. */
export function inTwoColumns(
  rows: readonly (readonly [string, string])[],
  width: number,
): string[] {
  const longest = Math.max(0, ...rows.map(([left]) => left.length).filter((it) => it <= 32))
  const indent = ' '.repeat(longest + 4)
  return rows.flatMap(([left, right]) => {
    const wrapped = wrapText(right, Math.max(24, width - indent.length))
    if (left.length > longest) return [`  ${left}`, ...wrapped.map((line) => indent + line)]
    const [first = '', ...others] = wrapped
    return [`  ${left.padEnd(longest)}  ${first}`, ...others.map((line) => indent + line)]
  })
}
