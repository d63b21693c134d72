/**
 * Says where a text stops being JSON, in the words of Go's scanner. Only asked when `JSON.parse` has
 * refused the text, because its own messages differ from one Node.js to the next.
 */
export function jsonFault(text: string): string {
  const scanner = new FaultScanner(text)
  try {
    scanner.document()
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
  return 'invalid JSON'
}

class Fault extends Error {}

const unexpectedEnd = () => new Fault('unexpected end of JSON input')

/** One character as Go quotes it; of a longer one only the first byte, as Go has it. */
function shown(char: string): string {
  if (char === "'") return `'\\''`
  if (char === '"') return `'"'`
  const first = String.fromCharCode(Buffer.from(char)[0] ?? 0)
  const quoted = JSON.stringify(first).slice(1, -1)
  return `'${quoted.replace(/^\\u00/, '\\x')}'`
}

class FaultScanner {
  readonly #text: string
  #at = 0
  /** The closing brackets still owed. */
  readonly #open: ('}' | ']')[] = []

  constructor(text: string) {
    this.#text = text
  }

  document(): void {
    this.#value()
    while (this.#open.length > 0) this.#afterValue()
    if (this.#next() !== '') this.#expected('after top-level value')
  }

  /** Reads a scalar or opens an object or array, up to its first value. */
  #value(): void {
    const char = this.#next()
    if (char === '{') this.#openObject()
    else if (char === '[') this.#openArray()
    else if (char === '"') this.#string()
    else if (char === '-' || /\d/.test(char)) this.#number()
    else this.#literal(char)
  }

  #openObject(): void {
    this.#at++
    this.#open.push('}')
    if (this.#next() === '}') this.#close()
    else this.#member()
  }

  #openArray(): void {
    this.#at++
    this.#open.push(']')
    if (this.#next() === ']') this.#close()
    else this.#value()
  }

  #member(): void {
    if (this.#next() !== '"') this.#expected('looking for beginning of object key string')
    this.#string()
    if (this.#next() !== ':') this.#expected('after object key')
    this.#at++
    this.#value()
  }

  #afterValue(): void {
    const closing = this.#open.at(-1)
    const char = this.#next()
    if (char === closing) this.#close()
    else if (char !== ',')
      this.#expected(closing === '}' ? 'after object key:value pair' : 'after array element')
    else {
      this.#at++
      if (closing === '}') this.#member()
      else this.#value()
    }
  }

  #close(): void {
    this.#at++
    this.#open.pop()
  }

  #string(): void {
    this.#at++
    for (;;) {
      if (this.#at >= this.#text.length) throw unexpectedEnd()
      const char = this.#here()
      if (char < ' ') this.#fail('in string literal')
      this.#at++
      if (char === '"') return
      if (char === '\\') this.#escape()
    }
  }

  #escape(): void {
    const char = this.#here()
    if (!'bfnrt\\/"u'.includes(char)) this.#fail('in string escape code')
    this.#at++
    for (let left = char === 'u' ? 4 : 0; left > 0; left--) {
      if (!/[0-9a-fA-F]/.test(this.#here())) this.#fail('in \\u hexadecimal character escape')
      this.#at++
    }
  }

  #number(): void {
    if (this.#here() === '-') this.#at++
    if (this.#here() === '0') this.#at++
    else this.#digits('in numeric literal')
    if (this.#text[this.#at] === '.') {
      this.#at++
      this.#digits('after decimal point in numeric literal')
    }
    if (/[eE]/.test(this.#text[this.#at] ?? '')) {
      this.#at++
      if (/[-+]/.test(this.#here())) this.#at++
      this.#digits('in exponent of numeric literal')
    }
  }

  #digits(where: string): void {
    if (!/\d/.test(this.#here())) this.#fail(where)
    while (/\d/.test(this.#text[this.#at] ?? '')) this.#at++
  }

  #literal(first: string): void {
    const word = ['true', 'false', 'null'].find((w) => w[0] === first)
    if (word === undefined) this.#expected('looking for beginning of value')
    for (const expected of word) {
      if (this.#here() !== expected) this.#fail(`in literal ${word} (expecting ${shown(expected)})`)
      this.#at++
    }
  }

  /** The character here; inside of a token Go takes the end of the text for a space. */
  #here(): string {
    return this.#text[this.#at] ?? ' '
  }

  /** The next character that is no space, or nothing at the end of the text. */
  #next(): string {
    while (/[ \t\r\n]/.test(this.#text[this.#at] ?? '')) this.#at++
    return this.#text[this.#at] ?? ''
  }

  /** Fails between tokens, where the end of the text is a fault of its own. */
  #expected(where: string): never {
    if (this.#at >= this.#text.length) throw unexpectedEnd()
    this.#fail(where)
  }

  #fail(where: string): never {
    throw new Fault(`invalid character ${shown(this.#here())} ${where}`)
  }
}
