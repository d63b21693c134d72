/** Finds the `>` that ends a tag, in as many pieces as it comes: one within quotes does not. */
export class TagEnd {
  #quote = ''
  #isAfterEquals = false

  /** The index behind it, or 0 if it is not in this piece. */
  find(piece: string): number {
    for (let index = 0; index < piece.length; index++) {
      const char = piece[index] ?? ''
      if (this.#quote !== '') {
        if (char === this.#quote) this.#quote = ''
        continue
      }
      if (char === '>') {
        this.#isAfterEquals = false
        return index + 1
      }
      if (this.#isAfterEquals && (char === '"' || char === "'")) this.#quote = char
      this.#isAfterEquals = char === '=' || (this.#isAfterEquals && /\s/.test(char))
    }
    return 0
  }
}
