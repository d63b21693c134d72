import { type FieldProblem, invalidValue, required } from './field-problem.ts'
import { dns1123LabelProblems, dns1123SubdomainProblems } from './names.ts'

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
