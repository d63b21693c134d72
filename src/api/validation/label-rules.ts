import { dns1123SubdomainProblems, patternProblem, type TextRule } from './names.ts'

const keyPattern = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const key = new RegExp(`^${keyPattern}$`)
const keyWords =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
const valuePattern = `(${keyPattern})?`
const value = new RegExp(`^${valuePattern}$`)

const keyPatternProblem = (): string =>
  patternProblem(keyWords, keyPattern, 'MyName', 'my.name', '123-abc')

function prefixProblems(prefix: string): string[] {
  if (prefix === '') return ['prefix part must be non-empty']
  return dns1123SubdomainProblems(prefix).map(
    // Kubernetes counts in bytes here and in characters where the same text is a name.
    (problem) => `prefix part ${problem.replace(/ characters$/, ' bytes')}`,
  )
}

/** A name with an optional DNS prefix: label and annotation keys, finalizers, signer names. */
export const qualifiedNameProblems: TextRule = (text) => {
  const parts = text.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.length > 2) {
    return [
      `a valid label key ${keyPatternProblem()} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const problems = parts.length === 2 ? prefixProblems(parts[0] ?? '') : []
  if (name === '') problems.push('name part must be non-empty')
  else if (Buffer.byteLength(name) > 63) problems.push('name part must be no more than 63 bytes')
  if (!key.test(name)) problems.push(`name part ${keyPatternProblem()}`)
  return problems
}

/** The value of a label. */
export const labelValueProblems: TextRule = (text) => {
  const problems = Buffer.byteLength(text) > 63 ? ['must be no more than 63 bytes'] : []
  if (value.test(text)) return problems
  return [
    ...problems,
    patternProblem(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
      valuePattern,
      'MyValue',
      'my_value',
      '12345',
    ),
  ]
}
