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
export function rewriteTag(tag: string, name: string, rewriteUrl: RewriteUrl): string {
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
