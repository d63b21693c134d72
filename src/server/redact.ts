const credentialWords =
  /(?:token|secret|password|passwd|credentials?|apikey|authorization|signature|assertion|jwt|bearer)$/
const credentialNames = new Set(['code', 'key', 'sig', 'auth', 'pwd', 'pass'])
const jwt = /eyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?/g
const redacted = 'REDACTED'

/** A request URI that may be written down: whatever in it could be a credential is taken out. */
export function redactUri(uri: string): string {
  const mark = uri.indexOf('?')
  const path = redactTokens(mark < 0 ? uri : uri.slice(0, mark))
  if (mark < 0) return path
  const pairs = uri.slice(mark + 1).split('&')
  return `${path}?${pairs.map(redactPair).join('&')}`
}

/** A text from which everything that looks like a JWT is taken out. */
export function redactTokens(text: string): string {
  return text.includes('eyJ') ? text.replace(jwt, redacted) : text
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
