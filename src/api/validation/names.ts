import { goQuote } from '../../core/index.ts'
import { type FieldProblem, invalidEach, invalidValue, required, tooLong } from './field-problem.ts'

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

/** Problems of a fully qualified domain name, at most one. */
export function domainNameProblems(text: string, field: string): FieldProblem[] {
  if (text === '') return [required(field)]
  const name = text.replace(/\.$/, '')
  const whole = dns1123SubdomainProblems(name)
  if (whole.length > 0) return [invalidValue(field, name, whole.join(','))]
  const labels = name.split('.')
  if (labels.length < 2) {
    const words = 'should be a domain with at least two segments separated by dots'
    return [invalidValue(field, name, words)]
  }
  for (const label of labels) {
    const problems = dns1123LabelProblems(label)
    if (problems.length > 0) return [invalidValue(field, label, problems.join(','))]
  }
  return []
}

const keyPattern = '[-._a-zA-Z0-9]+'
const key = new RegExp(`^${keyPattern}$`)

function parentDirectoryProblems(value: string): string[] {
  if (value === '.' || value === '..') return [`must not be '${value}'`]
  return value.startsWith('..') ? ["must not start with '..'"] : []
}

/** A key of a ConfigMap or a Secret: it must do as a file name. */
export const configKeyProblems: TextRule = (value) => [
  ...(Buffer.byteLength(value) > 253 ? ['must be no more than 253 characters'] : []),
  ...(key.test(value)
    ? []
    : [
        patternProblem(
          "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
          keyPattern,
          'key.name',
          'KEY_NAME',
          'key-name',
        ),
      ]),
  ...parentDirectoryProblems(value),
]

const maxDomain = 253
const maxPath = 253 + 63 + 1

/** The problems of the first label that has any: those of the rest would read the same. */
function firstLabelProblems(text: string, rule: TextRule, field: string): FieldProblem[] {
  for (const label of text.split('.')) {
    const problems = rule(label).map((words) => `validating label ${goQuote(label)}: ${words}`)
    if (problems.length > 0) return invalidEach(field, text, problems)
  }
  return []
}

/** Problems of the name of a certificate signer, such as `example.com/my-signer`. */
export function signerNameProblems(name: string, field: string): FieldProblem[] {
  if (name === '') return [required(field)]
  const [domain = '', path, ...rest] = name.split('/')
  if (path === undefined || rest.length > 0) {
    const words = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
    return [invalidValue(field, name, words)]
  }
  const hasDot = domain.includes('.')
  const words = 'should be a domain with at least two segments separated by dots'
  return [
    ...(domain.length > maxDomain ? [tooLong(field, maxDomain)] : []),
    ...firstLabelProblems(domain, dns1123LabelProblems, field),
    ...(hasDot ? [] : [invalidValue(field, domain, words)]),
    ...firstLabelProblems(path, dns1123SubdomainProblems, field),
    ...(name.length > maxDomain + maxPath + 1 ? [tooLong(field, maxDomain + maxPath + 1)] : []),
  ]
}
