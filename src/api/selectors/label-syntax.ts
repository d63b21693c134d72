const maxPartLength = 63
const maxPrefixLength = 253

const namePart = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'
const valueWhole = `(${namePart})?`
const dnsLabel = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
const dnsSubdomain = `${dnsLabel}(\\.${dnsLabel})*`

const wholeName = new RegExp(`^${namePart}$`)
const wholeValue = new RegExp(`^${valueWhole}$`)
const wholePrefix = new RegExp(`^${dnsSubdomain}$`)

const edges = 'must start and end with an alphanumeric character'
const nameRule =
  `must consist of alphanumeric characters, '-', '_' or '.', and ${edges} ` +
  `(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${namePart}')`
const valueRule =
  `a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and ${edges} ` +
  `(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '${valueWhole}')`
const prefixRule =
  `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and ${edges} ` +
  `(e.g. 'example.com', regex used for validation is '${dnsSubdomain}')`

const tooLong = (max: number): string => `must be no more than ${max} bytes`
const byteLength = (text: string): number => Buffer.byteLength(text, 'utf8')

function prefixProblems(prefix: string): string[] {
  if (prefix === '') return ['prefix part must be non-empty']
  const problems: string[] = []
  if (byteLength(prefix) > maxPrefixLength) problems.push(tooLong(maxPrefixLength))
  if (!wholePrefix.test(prefix)) problems.push(prefixRule)
  return problems.map((problem) => `prefix part ${problem}`)
}

/** What is wrong with a label key, in Kubernetes' words; empty when nothing is. */
export function labelKeyProblems(key: string): string[] {
  const parts = key.split('/')
  if (parts.length > 2) {
    return [
      `a valid label key ${nameRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const name = parts.at(-1) ?? ''
  const problems = parts.length === 2 ? prefixProblems(parts[0] ?? '') : []
  if (name === '') problems.push('name part must be non-empty')
  if (byteLength(name) > maxPartLength) problems.push(`name part ${tooLong(maxPartLength)}`)
  if (!wholeName.test(name)) problems.push(`name part ${nameRule}`)
  return problems
}

/** What is wrong with a label value, in Kubernetes' words; empty when nothing is. */
export function labelValueProblems(value: string): string[] {
  const problems: string[] = []
  if (byteLength(value) > maxPartLength) problems.push(tooLong(maxPartLength))
  if (!wholeValue.test(value)) problems.push(valueRule)
  return problems
}
