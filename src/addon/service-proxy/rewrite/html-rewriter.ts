type RewriteUrl = (url: string) => string

/** Attributes that hold a URL, by the tags that have them; kube-apiserver's list. */
const urlAttributes: ReadonlyMap<string, ReadonlySet<string>> = tagsOf({
  href: 'a area base link',
  src: 'audio embed frame iframe img input script source track video',
  action: 'form',
  formaction: 'button input',
  cite: 'blockquote del ins q',
  codebase: 'applet object',
  longdesc: 'frame iframe img',
  usemap: 'img input object',
  background: 'body',
  icon: 'command',
  profile: 'head',
  manifest: 'html',
  classid: 'object',
  data: 'object',
  poster: 'video',
})

/** Attributes that hold several, which kube-apiserver leaves alone: its pages then lack their pictures. */
const srcsetAttributes: ReadonlyMap<string, ReadonlySet<string>> = tagsOf({
  srcset: 'img source',
  imagesrcset: 'link',
})

function tagsOf(table: Readonly<Record<string, string>>): ReadonlyMap<string, ReadonlySet<string>> {
  return new Map(
    Object.entries(table).map(([attribute, tags]) => [attribute, new Set(tags.split(' '))]),
  )
}

/**
 * Rewrites the URLs of one tag, from its `<` to its `>`; all else stays byte for byte. An add-on may send any tag, so
 * each part is read once, by a pattern of its own: one for all of them would go back and forth for seconds.
 */
function rewriteTag(tag: string, name: string, rewriteUrl: RewriteUrl): string {
  const reader = new Reader(tag, name.length + 1)
  let out = tag.slice(0, name.length + 1)
  while (!reader.isDone) {
    out += reader.take(between)
    const attribute = reader.take(attributeName)
    const equals = reader.take(equalsSign)
    const value = equals === '' ? '' : reader.take(attributeValue)
    out += attribute + equals + rewriteValue({ name, attribute, value, rewriteUrl })
    if (attribute === '') out += reader.takeOne()
  }
  return out
}

const between = /[\s/]+/y
// One that begins with an equals sign is a name, however odd.
const attributeName = /=?[^\s/>=]*/y
const equalsSign = /\s*=\s*/y
const attributeValue = /"[^"]*"|'[^']*'|[^\s>]+/y

class Reader {
  readonly #text: string
  #at: number

  constructor(text: string, at: number) {
    this.#text = text
    this.#at = at
  }

  get isDone(): boolean {
    return this.#at >= this.#text.length
  }

  /** What matches here, or nothing. */
  take(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }

  takeOne(): string {
    return this.#text[this.#at++] ?? ''
  }
}

interface Attribute {
  /** Of the tag. */
  readonly name: string
  readonly attribute: string
  readonly value: string
  readonly rewriteUrl: RewriteUrl
}

function rewriteValue({ name, attribute, value, rewriteUrl }: Attribute): string {
  if (value === '') return value
  const lower = attribute.toLowerCase()
  const isUrl = urlAttributes.get(lower)?.has(name) === true
  if (!isUrl && !srcsetAttributes.get(lower)?.has(name)) return value
  const quote = /^["']/.exec(value)?.[0] ?? ''
  const inner = quote === '' ? value : value.slice(1, -1)
  const rewrite = (url: string): string => rewriteUrl(withPlainSlash(url))
  return quote + (isUrl ? trimmed(inner, rewrite) : rewriteSrcset(inner, rewrite)) + quote
}

/** Some templates write every slash like this. */
const withPlainSlash = (url: string): string =>
  url.replace(/^(?:&#x0{0,8}2f;|&#0{0,8}47;|&sol;)/i, '/')

/** Rewrites what is between outer spaces, which browsers ignore. */
function trimmed(text: string, rewrite: RewriteUrl): string {
  const url = text.trim()
  const before = text.length - text.trimStart().length
  return text.slice(0, before) + rewrite(url) + text.slice(before + url.length)
}

const betweenCandidates = /[\s,]+/y
const candidate = /\S+/y
const descriptors = /[^,]*/y

/** URLs with a size behind each, and commas between them; a URL may have commas too, but does not end in one. */
function rewriteSrcset(text: string, rewrite: RewriteUrl): string {
  const reader = new Reader(text, 0)
  let out = ''
  while (!reader.isDone) {
    out += reader.take(betweenCandidates)
    const found = reader.take(candidate)
    let end = found.length
    while (found[end - 1] === ',') end--
    if (end > 0) out += rewrite(found.slice(0, end))
    out += found.slice(end)
    if (end === found.length) out += reader.take(descriptors)
  }
  return out
}

/** Finds the `>` that ends a tag, in as many pieces as it comes: one within quotes does not. */
class TagEnd {
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
