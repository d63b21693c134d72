const credentialWords =
  /(?:token|secret|password|passwd|credentials?|apikey|authorization|signature|assertion|jwt|bearer)$/
const credentialNames = new Set(['code', 'key', 'sig', 'auth', 'pwd', 'pass'])
const dottedWords = /[\w-]+(?:\.[\w-]*)*/g
const redacted = 'REDACTED'

/** A request URI that may be written down: whatever in it could be a credential is taken out. */
export function redactUri(uri: string): string {
  const mark = uri.indexOf('?')
  const path = redactTokens(mark < 0 ? uri : uri.slice(0, mark))
  if (mark < 0) return path
  const pairs = uri.slice(mark + 1).split('&')
  return `${path}?${pairs.map(redactPair).join('&')}`
}

/** A text from which everything that looks like a JWT is taken out. Linear: strangers choose the text. */
export function redactTokens(text: string): string {
  return text.includes('eyJ') ? text.replace(dottedWords, withoutTokens) : text
}

/** A token is a part with `eyJ` and five characters more, a part that is not empty, and a third if there is one. */
function withoutTokens(words: string): string {
  if (!words.includes('eyJ')) return words
  const parts = words.split('.')
  const kept: string[] = []
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at] ?? ''
    const start = part.indexOf('eyJ')
    const isToken = start >= 0 && part.length >= start + 8 && Boolean(parts[at + 1])
    kept.push(isToken ? part.slice(0, start) + redacted : part)
    if (isToken) at += 2
  }
  return kept.join('.')
}

function redactPair(pair: string): string {
  const equals = pair.indexOf('=')
  if (equals < 0) return redactTokens(pair)
  const name = pair.slice(0, equals)
  return isCredential(name) ? `${name}=${redacted}` : redactTokens(pair)
}

function isCredential(name: string): boolean {
  const bare = decoded(name)
    .toLowerCase()
    .replaceAll(/[^a-z\d]/g, '')
  return credentialNames.has(bare) || credentialWords.test(bare)
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
