import { rewriteTag } from './rewrite-tag.ts'
import { TagEnd } from './tag-end.ts'

/** Between these and their end tags there are no tags. */
const rawText = new Set([
  'script',
  'style',
  'textarea',
  'title',
  'xmp',
  'iframe',
  'noembed',
  'noframes',
  'plaintext',
])

/** A tag that is longer than this is passed on as it is. */
const longestTag = 64 * 1024

const commentStart = '<!--'
const commentEnd = '-->'

/** What is ready, and how much of the text was taken for it. */
interface Step {
  readonly out: string
  readonly taken: number
}

/** What the text that comes next is read as. */
type Reading = (text: string) => Step

/**
 * Rewrites the URLs in the tags of a page as it passes, in any encoding of which ASCII is a part. All that is no such
 * URL stays byte for byte. However a page is cut, its bytes are looked at once: it is somebody else's page.
 */
export class HtmlRewriter {
  readonly #rewriteUrl: (url: string) => string
  /** What has come of something whose end decides what becomes of it. */
  #held: string[] = []
  #heldLength = 0
  #tagEnd = new TagEnd()

  constructor(rewriteUrl: (url: string) => string) {
    this.#rewriteUrl = rewriteUrl
  }

  /** Takes the next piece and returns what is ready, both as latin1. */
  push(piece: string): string {
    let out = ''
    let rest = piece
    while (rest !== '') {
      const step = this.#reading(rest)
      out += step.out
      rest = rest.slice(step.taken)
    }
    return out
  }

  /** What was held back. */
  end(): string {
    return this.#release()
  }

  readonly #text: Reading = (text) => {
    const start = text.indexOf('<')
    if (start < 0) return { out: text, taken: text.length }
    this.#hold('<')
    this.#reading = this.#opening
    return { out: text.slice(0, start), taken: start + 1 }
  }

  #reading: Reading = this.#text

  /** Behind a `<`, and perhaps the beginning of a comment. */
  readonly #opening: Reading = (text) => {
    const held = this.#release()
    const [next = ''] = text
    if (commentStart.startsWith(held + next)) {
      const isComment = held + next === commentStart
      // The two dashes may be those of the end already.
      this.#hold(isComment ? '--' : held + next)
      if (isComment) this.#reading = this.#until(commentEnd, this.#text)
      return { out: isComment ? '<!' : '', taken: 1 }
    }
    if (held !== '<' || next === '/' || next === '?') this.#reading = this.#markup
    else if (/[a-z]/i.test(next)) {
      this.#hold(held)
      this.#reading = this.#tag
      return { out: '', taken: 0 }
    } else this.#reading = this.#text
    return { out: held, taken: 0 }
  }

  readonly #markup: Reading = (text) => {
    const end = text.indexOf('>') + 1
    if (end > 0) this.#reading = this.#text
    const taken = end || text.length
    return { out: text.slice(0, taken), taken }
  }

  readonly #tag: Reading = (text) => {
    const end = this.#tagEnd.find(text)
    const taken = end || text.length
    this.#hold(text.slice(0, taken))
    if (end > 0) return { out: this.#rewrite(this.#release()), taken }
    if (this.#heldLength <= longestTag) return { out: '', taken }
    this.#tagEnd = new TagEnd()
    this.#reading = this.#text
    return { out: this.#release(), taken }
  }

  #rewrite(tag: string): string {
    const name = /^<([^\s/>]+)/.exec(tag)?.[1]?.toLowerCase() ?? ''
    this.#reading = rawText.has(name) ? this.#until(`</${name}`, this.#markup) : this.#text
    return rewriteTag(tag, name, this.#rewriteUrl)
  }

  /** Passes everything on up to an end, which may be cut by the end of the piece. */
  #until(end: string, then: Reading): Reading {
    return (text) => {
      const held = this.#release()
      const all = held + text
      const found = all.toLowerCase().indexOf(end)
      if (found >= 0) {
        this.#reading = then
        const ready = found + end.length
        return { out: all.slice(0, ready), taken: ready - held.length }
      }
      const ready = Math.max(0, all.length - end.length + 1)
      this.#hold(all.slice(ready))
      return { out: all.slice(0, ready), taken: text.length }
    }
  }

  #hold(text: string): void {
    this.#held.push(text)
    this.#heldLength += text.length
  }

  #release(): string {
    const held = this.#held.join('')
    this.#held = []
    this.#heldLength = 0
    return held
  }
}
