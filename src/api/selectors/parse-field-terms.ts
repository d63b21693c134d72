import { badRequest } from '../../core/index.ts'

/** One condition on a field of an object. */
export interface FieldTerm {
  readonly field: string
  readonly equal: boolean
  readonly value: string
}

/** Far more than anybody writes; each is kept, and checked on every change, by every watch that has it. */
const maxTerms = 250

/** Splits at commas; a backslash keeps the character after it. */
const splitTerms = (text: string): string[] => text.match(/(?:\\[^]|[^\\,]|\\$)+/g) ?? []

function unescapeValue(text: string): string {
  return text.replace(/\\([^]?)|[,=]/gu, (found, escaped: string | undefined) => {
    if (escaped === undefined) {
      const codePoint = found.codePointAt(0) ?? 0
      throw badRequest(`invalid field selector: unescaped character in value: ${codePoint}`)
    }
    if (escaped === '\\' || escaped === ',' || escaped === '=') return escaped
    throw badRequest(`invalid field selector: invalid escape sequence: ${found}`)
  })
}

/** Parses Kubernetes' field selector grammar (`a=b,c!=d`); throws a 400. Terms come out sorted. */
export function parseFieldTerms(text: string): FieldTerm[] {
  const terms = splitTerms(text)
  if (terms.length > maxTerms)
    throw badRequest(`the field selector has more than ${maxTerms} terms`)
  return terms.toSorted().map((term) => {
    const operator = /!=|==|=/.exec(term)
    if (operator === null) {
      throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`)
    }
    return {
      field: term.slice(0, operator.index),
      equal: operator[0] !== '!=',
      value: unescapeValue(term.slice(operator.index + operator[0].length)),
    }
  })
}
