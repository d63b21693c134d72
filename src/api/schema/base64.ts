const alphabet = /^[A-Za-z0-9+/]*={0,2}$/
const lineBreaks = /[\r\n]/g

/**
 * Where standard base64 goes wrong, as the index that Go names, or -1. Line breaks are allowed.
 */
export function base64Fault(text: string): number {
  if (text.length % 4 === 0 && alphabet.test(text)) return -1
  let inQuantum = 0
  let start = 0
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i)
    if (char === '\r' || char === '\n') continue
    if (inQuantum === 0) start = i
    if (char === '=') return paddingFault(text, i, inQuantum)
    if (!/[A-Za-z0-9+/]/.test(char)) return i
    inQuantum = (inQuantum + 1) % 4
  }
  return inQuantum === 0 ? -1 : start
}

function paddingFault(text: string, at: number, inQuantum: number): number {
  if (inQuantum < 2) return at
  let next = at + 1
  const skipBreaks = () => {
    while (text[next] === '\r' || text[next] === '\n') next++
  }
  skipBreaks()
  if (inQuantum === 2) {
    if (next === text.length) return text.length
    if (text[next] !== '=') return next - 1
    next++
    skipBreaks()
  }
  return next === text.length ? -1 : next
}

/** Valid base64 in the one spelling that Go writes: no line breaks, unused bits zero. */
export function canonicalBase64(text: string): string {
  const plain = text.replace(lineBreaks, '')
  const last = plain.indexOf('=')
  if (last < 0) return plain
  const head = last - (last % 4)
  return plain.slice(0, head) + Buffer.from(plain.slice(head), 'base64').toString('base64')
}
