/** One record of a CSV text and the line on which it begins. */
export interface CsvRecord {
  readonly line: number
  readonly fields: readonly string[]
}

/** A CSV text that cannot be read; says where, never what. */
export class CsvInvalid extends Error {
  readonly line: number

  constructor(line: number, what: string) {
    super(`line ${line}: ${what}`)
    this.line = line
  }
}

/** Reads RFC 4180 as Go's reader does: no comments, blank lines skipped, quotes only around whole fields. */
export function parseCsv(text: string): CsvRecord[] {
  const reader = new CsvReader(text.replaceAll(/\r(?=\n|$)/g, ''))
  const records: CsvRecord[] = []
  for (let record = reader.next(); record; record = reader.next()) records.push(record)
  return records
}

class CsvReader {
  readonly #text: string
  #at = 0
  #line = 1

  constructor(text: string) {
    this.#text = text
  }

  next(): CsvRecord | undefined {
    while (this.#text[this.#at] === '\n') this.#advance('\n')
    if (this.#at >= this.#text.length) return undefined
    const line = this.#line
    const fields = [this.#field()]
    while (this.#text[this.#at] === ',') {
      this.#at += 1
      fields.push(this.#field())
    }
    return { line, fields }
  }

  #field(): string {
    return this.#text[this.#at] === '"' ? this.#quoted() : this.#plain()
  }

  #plain(): string {
    const [value = ''] = /^[^,\n]*/.exec(this.#text.slice(this.#at)) ?? []
    if (value.includes('"')) throw new CsvInvalid(this.#line, 'a quote inside an unquoted field')
    this.#at += value.length
    return value
  }

  #quoted(): string {
    const begin = this.#line
    const match = /^"((?:[^"]|"")*)"/.exec(this.#text.slice(this.#at))
    if (!match) throw new CsvInvalid(begin, 'a quoted field has no end')
    this.#advance(match[0])
    const next = this.#text[this.#at]
    if (next !== undefined && next !== ',' && next !== '\n') {
      throw new CsvInvalid(this.#line, 'text after a quoted field')
    }
    return (match[1] ?? '').replaceAll('""', '"')
  }

  #advance(part: string): void {
    this.#at += part.length
    this.#line += part.split('\n').length - 1
  }
}
