/** Problems of a text, each a sentence without its field path; none when it is well formed. */
export type TextRule = (value: string) => string[]

/** The words Kubernetes uses when a pattern does not match. */
export function patternProblem(what: string, pattern: string, ...examples: string[]): string {
  const shown = examples.map((example) => `'${example}', `).join(' or ')
  return `${what} (${shown && `e.g. ${shown}`}regex used for validation is '${pattern}')`
}

/** The words for a number outside its bounds. */
export const rangeProblem = (low: number, high: number): string =>
  `must be between ${low} and ${high}, inclusive`

const labelPattern = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const label = new RegExp(`^${labelPattern}$`)
const subdomainPattern = `${labelPattern}(\\.${labelPattern})*`
const subdomain = new RegExp(`^${subdomainPattern}$`)

const tooManyCharacters = (value: string, max: number): string[] =>
  Buffer.byteLength(value) > max ? [`must be no more than ${max} characters`] : []

/** RFC 1123 label: at most 63 lower-case letters, digits and dashes. */
export const dns1123LabelProblems: TextRule = (value) => {
  const problems = tooManyCharacters(value, 63)
  if (label.test(value)) return problems
  const why = subdomain.test(value)
    ? 'must not contain dots'
    : patternProblem(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
        labelPattern,
        'my-name',
        '123-abc',
      )
  return [...problems, why]
}

/** RFC 1123 subdomain: labels joined by dots, at most 253 characters. */
export const dns1123SubdomainProblems: TextRule = (value) => {
  const problems = tooManyCharacters(value, 253)
  if (subdomain.test(value)) return problems
  return [
    ...problems,
    patternProblem(
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
      subdomainPattern,
      'example.com',
    ),
  ]
}

/** A name that fits into one segment of a URL path. */
export const pathSegmentProblems: TextRule = (value) => {
  if (value === '.' || value === '..') return [`may not be '${value}'`]
  return pathSegmentPrefixProblems(value)
}

const pathSegmentPrefixProblems: TextRule = (value) =>
  ['/', '%'].filter((mark) => value.includes(mark)).map((mark) => `may not contain '${mark}'`)

/** Decides about a name, or about the prefix of a generated one. */
export type NameRule = (name: string, prefix: boolean) => string[]

// Two characters give way to one, as in Kubernetes: the rest of the name is still to come.
const maskTrailingDash = (name: string): string =>
  name.length > 1 && name.endsWith('-') ? `${name.slice(0, -2)}a` : name

const nameRule =
  (rule: TextRule): NameRule =>
  (name, prefix) =>
    rule(prefix ? maskTrailingDash(name) : name)

/** Names of most kinds. */
export const nameIsDnsSubdomain = nameRule(dns1123SubdomainProblems)

/** Names of namespaces and services. */
export const nameIsDnsLabel = nameRule(dns1123LabelProblems)

/** Names of RBAC objects. */
export const nameIsPathSegment: NameRule = (name, prefix) =>
  prefix ? pathSegmentPrefixProblems(name) : pathSegmentProblems(name)
