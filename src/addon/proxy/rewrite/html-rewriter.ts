/** Attributes that hold a URL, by the tags that have them. */
const urlAttributes: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
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
  }).map(([attribute, tags]) => [attribute, new Set(tags.split(' '))]),
)

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

const attributeShape = /([^\s"'>/=]+)(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'=<>`]+)/g

/**
 * Rewrites the URLs in the tags of a page as it passes, in any encoding of which ASCII is a part. All that is no such
 * URL stays byte for byte.
 */
export class HtmlRewriter {
  readonly #rewriteUrl: (url: string) => string
  #held = ''
  /** The tag whose raw text we are in. */
  #raw = ''
  #inComment = false

  constructor(rewriteUrl: (url: string) => string) {
    this.#rewriteUrl = rewriteUrl
  }

  /** Takes the next piece and returns what is ready, both as latin1. */
  push(piece: string): string {
    const text = this.#held + piece
    this.#held = ''
    let out = ''
    let at = 0
    while (at < text.length) {
      const next = this.#step(text, at)
      if (next === undefined) {
        this.#held = text.slice(at)
        break
      }
      out += next.out
      at = next.end
    }
    return out
  }

  /** What was held back. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest
  }

  /** What comes next in the text; `undefined` when more of it is needed to know. */
  #step(text: string, at: number): { out: string; end: number } | undefined {
    if (this.#inComment) return this.#endOf(text, at, '-->', () => (this.#inComment = false))
    if (this.#raw !== '') return this.#endOfRawText(text, at)
    const start = text.indexOf('<', at)
    if (start < 0) return { out: text.slice(at), end: text.length }
    if (start > at) return { out: text.slice(at, start), end: start }
    return this.#markup(text, at)
  }

  #markup(text: string, at: number) {
    if (text.length - at < 4 && '<!--'.startsWith(text.slice(at))) return undefined
    if (text.startsWith('<!--', at)) {
      this.#inComment = true
      return { out: '<!--', end: at + 4 }
    }
    const isTag = /[a-z]/i.test(text[at + 1] ?? '')
    const isOther = '/!?'.includes(text[at + 1] ?? 'x')
    if (!isTag && !isOther) return { out: '<', end: at + 1 }
    const end = isTag ? tagEnd(text, at + 1) : text.indexOf('>', at) + 1
    if (end > 0) return { out: isTag ? this.#tag(text.slice(at, end)) : text.slice(at, end), end }
    if (text.length - at <= longestTag) return undefined
    return { out: text.slice(at), end: text.length }
  }

  #endOfRawText(text: string, at: number) {
    const wanted = `</${this.#raw}`
    const end = text.slice(at).toLowerCase().indexOf(wanted)
    if (end >= 0) {
      this.#raw = ''
      return { out: text.slice(at, at + end + wanted.length), end: at + end + wanted.length }
    }
    return this.#keepTail(text, at, wanted.length)
  }

  #endOf(text: string, at: number, wanted: string, found: () => void) {
    const end = text.indexOf(wanted, at)
    if (end < 0) return this.#keepTail(text, at, wanted.length)
    found()
    return { out: text.slice(at, end + wanted.length), end: end + wanted.length }
  }

  /** The end that is looked for may be cut by the end of the piece. */
  #keepTail(text: string, at: number, length: number) {
    const end = text.length - length + 1
    return end > at ? { out: text.slice(at, end), end } : undefined
  }

  #tag(tag: string): string {
    const name = /^<([^\s/>]+)/.exec(tag)?.[1]?.toLowerCase() ?? ''
    if (rawText.has(name)) this.#raw = name
    const head = name.length + 1
    return (
      tag.slice(0, head) +
      tag.slice(head).replace(attributeShape, (whole, attribute: string, equals, value: string) => {
        if (!urlAttributes.get(attribute.toLowerCase())?.has(name)) return whole
        return attribute + equals + this.#value(value)
      })
    )
  }

  #value(value: string): string {
    const quote = /^["']/.exec(value)?.[0] ?? ''
    const inner = quote === '' ? value : value.slice(1, -1)
    const [, before = '', url = '', after = ''] = /^(\s*)([^]*?)(\s*)$/.exec(inner) ?? []
    return quote + before + this.#rewriteUrl(url) + after + quote
  }
}

/** The index behind the `>` of a tag, or 0 while it is not there: one within quotes is not it. */
function tagEnd(text: string, from: number): number {
  let quote = ''
  let afterEquals = false
  for (let index = from; index < text.length; index++) {
    const char = text[index] ?? ''
    if (quote !== '') {
      if (char === quote) quote = ''
      continue
    }
    if (char === '>') return index + 1
    if (afterEquals && (char === '"' || char === "'")) quote = char
    afterEquals = char === '=' || (afterEquals && /\s/.test(char))
  }
  return 0
}
