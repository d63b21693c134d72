import { goQuote } from '../../core/index.ts'
import { type FieldProblem, invalidEach, invalidValue, required, tooLong } from './field-problem.ts'
import { dns1123LabelProblems, dns1123SubdomainProblems, type TextRule } from './names.ts'

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
