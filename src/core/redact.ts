declare const brand: unique symbol

/** A text from which `redact` has removed everything with the shape of a credential. */
export type RedactedText = string & { readonly [brand]: 'redacted' }

const redacted = 'REDACTED'

/**
 * Removes everything that has the shape of a credential, in the spellings in which one can get into
 * a text: plain, percent-encoded, escaped as in JSON or HTML, hexadecimal, base64. Bootstrap tokens, JWTs, bearer and
 * basic credentials, passwords in URLs, values of parameters with the name of a credential, private
 * keys. The only way to a `RedactedText`, which audit and log sinks require.
 *
 * Takes linear time, since clients choose the text, and leaves JSON valid: no quote and no backslash
 * outside of a removed escape is touched.
 */
export function redact(text: string): RedactedText {
  return (isSuspicious(text) ? redactSuspicious(text) : text) as RedactedText
}

const marks = /eyJ|%[2-7]|\\(?:u0|x[02-7])|PRIVATE KEY|[Bb]earer|[Bb]asic|[?&;]|:\/\//

/** Nearly all texts are not, and stay as they are: this is on the path of every request. */
const isSuspicious = (text: string): boolean =>
  marks.test(text) || hasToken(text) || hasLongRun(text)

const minSecretLength = 16

/** A dot and 16 letters or digits. */
function hasToken(text: string): boolean {
  for (let dot = text.indexOf('.'); dot >= 0; dot = text.indexOf('.', dot + 1)) {
    let end = dot + 1
    while (end <= dot + minSecretLength && isAlphanumeric(text.charCodeAt(end))) end++
    if (end > dot + minSecretLength) return true
  }
  return false
}

/** A bootstrap token in base64 has at least this many letters and digits of its own. */
const minRunLength = 29

/** Looks at every 29th character first: a run of that length cannot miss all of them. */
function hasLongRun(text: string): boolean {
  for (let at = minRunLength - 1; at < text.length; at += minRunLength) {
    if (!isAlphanumeric(text.charCodeAt(at))) continue
    let [begin, end] = [at, at + 1]
    while (begin > 0 && isAlphanumeric(text.charCodeAt(begin - 1))) begin--
    while (end - begin < minRunLength && isAlphanumeric(text.charCodeAt(end))) end++
    if (end - begin >= minRunLength) return true
  }
  return false
}

const isAlphanumeric = (code: number): boolean =>
  (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a)

function redactSuspicious(text: string): string {
  const plain = redactPlain(text)
  const decoded = hasEscape.test(plain) ? plain.replace(word, redactEncoded) : plain
  return hasLongRun(decoded) ? decoded.replace(longRun, redactBase64) : decoded
}

function redactPlain(text: string): string {
  let clean = redactJwts(redactPrivateKeys(text))
  if (clean.includes('=')) clean = clean.replace(parameter, redactParameter)
  if (clean.includes('://')) clean = clean.replace(userInfo, `://${redacted}@`)
  if (schemeName.test(clean)) clean = clean.replace(scheme, redactScheme)
  return hasToken(clean) ? clean.replace(bootstrapToken, redactToken) : clean
}

/** The id is public and stays. Longer secrets than Kubernetes' are ours. Capitals are as good as the token. */
const bootstrapToken = /([a-z0-9]{6})\.([a-z0-9]{16,})([.-](?=[a-z0-9]))?/gi

/**
 * A secret without any digit is rare (1 of 200), and words of that length are not: such a one is
 * taken for a word if it is longer, goes on like a domain name (`admissionregistration.k8s.io`), or
 * has capitals (`Immediate.processImmediate`).
 */
const redactToken = (match: string, id: string, secret: string, next = ''): string =>
  !/\d/.test(secret) && (secret.length > minSecretLength || next !== '' || /[A-Z]/.test(secret))
    ? match
    : `${id}.${redacted}${next}`

const schemeName = /bearer|basic/i
const scheme = /\b(bearer|basic)((?: |%20|\+)+)([\w.~+/=-]{8,})/gi

/** `bearer token` is prose, `bearer dXNlcjpwYXNz` and `bearer 0a1b2c3d` are credentials. */
const redactScheme = (match: string, name: string, gap: string, value: string): string =>
  /\d|=|[a-z][A-Z]/.test(value) ? `${name}${gap}${redacted}` : match

const userInfo = /:\/\/[^/@\s"\\]{1,256}@/g

const parameter = /([?&;])([^=&;?\s"\\]{1,64})=([^&\s"\\]*)/g
const credentialWords =
  /(?:token|secret|password|passwd|credentials?|apikey|authorization|signature|assertion|jwt|bearer)$/
const credentialNames = new Set(['code', 'key', 'sig', 'auth', 'pwd', 'pass'])

function redactParameter(match: string, before: string, name: string): string {
  const bare = decoded(name)
    .toLowerCase()
    .replaceAll(/[^a-z\d]/g, '')
  const isCredential = credentialNames.has(bare) || credentialWords.test(bare)
  return isCredential ? `${before}${name}=${redacted}` : match
}

const keyMarks = /-----(BEGIN|END) [A-Z ]{0,30}PRIVATE KEY-----|"/g

/** From the beginning of a key to its end, or, where that was cut off, to the end of the string. */
function redactPrivateKeys(text: string): string {
  if (!text.includes('PRIVATE KEY')) return text
  const kept: string[] = []
  let from = 0
  let isInKey = false
  for (const { 0: mark, 1: kind, index } of text.matchAll(keyMarks)) {
    if (isInKey && kind !== 'BEGIN') {
      kept.push(redacted)
      from = index
      isInKey = false
    } else if (!isInKey && kind === 'BEGIN') {
      kept.push(text.slice(from, index + mark.length))
      isInKey = true
    }
  }
  kept.push(isInKey ? redacted : text.slice(from))
  return kept.join('')
}

const dottedWords = /[\w-]+(?:\.[\w-]*)*/g

const redactJwts = (text: string): string =>
  text.includes('eyJ') ? text.replace(dottedWords, withoutJwts) : text

/** A JWT is a part with `eyJ` and five characters more, and one or two parts after it; the second is empty if detached. */
function withoutJwts(words: string): string {
  if (!words.includes('eyJ')) return words
  const parts = words.split('.')
  const kept: string[] = []
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] ?? ''
    const start = part.indexOf('eyJ')
    const isToken =
      start >= 0 && part.length >= start + 8 && Boolean(parts[at + 1] || parts[at + 2])
    kept.push(isToken ? part.slice(0, start) + redacted : part)
    if (isToken) at += 2
  }
  return kept.join('.')
}

/** A run without delimiters. A backslash belongs to it only where it begins an escape: others may be of JSON around it. */
const word = /(?:[^\s"'<>/?&=,;\\]|\\{1,8}(?:u0|x[02-7])|&#x?[0-9A-Fa-f]{1,6};)+/g
/** An escape of a printable character: of URLs, of JSON, of programming languages and of HTML. */
const escape =
  /%([2-7][0-9A-Fa-f])|\\{1,8}[ux]0{0,2}([2-7][0-9A-Fa-f])|&#x0{0,4}([2-7][0-9A-Fa-f]);|&#0{0,4}(3[2-9]|[4-9]\d|1[01]\d|12[0-6]);/gi
const hasEscape = new RegExp(escape.source, 'i')
/** A text can be encoded again and again; clients and proxies do so at most this often. */
const maxDecodings = 4
/** Longer words with escapes are removed without a look: four rounds of decoding would take too long. */
const maxEncodedLength = 4_096

/** Gives the word back decoded and redacted if a credential comes to light, else as it is. */
function redactEncoded(encoded: string): string {
  if (!hasEscape.test(encoded)) return encoded
  if (encoded.length > maxEncodedLength) return redacted
  let text = encoded
  for (let round = 0; round < maxDecodings; round++) {
    const next = decoded(text)
    if (next === text) return encoded
    text = next
    const clean = redactPlain(text)
    if (clean !== text) return clean.replaceAll(/[\s"\\<>]/g, '_')
  }
  return encoded
}

const decoded = (text: string): string =>
  text.replace(escape, (_match, ...groups: (string | undefined)[]) => {
    const [percent, unicode, entity, decimal] = groups
    const hex = percent ?? unicode ?? entity
    return String.fromCharCode(hex ? Number.parseInt(hex, 16) : Number(decimal))
  })

/** Base64 of a token has neither `+` nor `/`. At its ends a character may mix with its neighbours. */
const longRun = /[A-Za-z0-9]{29,}/g
const credentialInBase64 = /[a-z0-9]{5}\.[a-z0-9]{15}|eyJ[\w-]{5,}\.|PRIVATE KEY/
/** A bootstrap token in hexadecimal has at least this many digits. */
const hexadecimal = /[0-9a-f]{46,}/gi

function redactBase64(run: string): string {
  for (const [digits] of run.matchAll(hexadecimal))
    for (const offset of [0, 1])
      if (credentialInBase64.test(Buffer.from(digits.slice(offset), 'hex').toString('latin1')))
        return redacted
  if (/^[0-9a-f]+$/i.test(run)) return run
  for (let offset = 0; offset < 4; offset++)
    if (credentialInBase64.test(Buffer.from(run.slice(offset), 'base64').toString('latin1')))
      return redacted
  return run
}
