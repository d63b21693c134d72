const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const unfitInTarget = /[^\x21-\xff]/
const unfitInValue = /[^\t\x20-\x7e\x80-\xff]/

/** What a request begins with, headers as a flat list with Host and framing; `undefined` if they do not fit into a head. */
export function requestHead(
  method: string,
  target: string,
  headers: readonly string[],
): string | undefined {
  if (!token.test(method) || target === '' || unfitInTarget.test(target)) return undefined
  let head = `${method} ${target} HTTP/1.1\r\n`
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? ''
    const value = headers[index + 1] ?? ''
    if (!token.test(name) || unfitInValue.test(value)) return undefined
    head += `${name}: ${value}\r\n`
  }
  return `${head}\r\n`
}
