import { badRequest, type KubeObject } from '../../core/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'

/** One condition on a field of an object. */
interface FieldTerm {
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
function parseFieldTerms(text: string): FieldTerm[] {
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

/** What a field selector needs to know of a kind. */
export type SelectableKind = Pick<KindDefinition, 'kind' | 'selectableFields'>

/** Tells whether an object is selected by its fields. */
export interface FieldSelector {
  (object: KubeObject): boolean
  /** True when nothing is left out, so that there is no need to ask. */
  readonly isEverything: boolean
  /** The only `metadata.name` that can be selected. */
  readonly pinnedName?: string
  /** The only `metadata.namespace` that can be selected. */
  readonly pinnedNamespace?: string
  /** True when that name and namespace decide alone, so that the object need not be read. */
  readonly isPinned: boolean
  /** What must hold, one by one, for those who keep the values of fields. */
  readonly terms: readonly ReadableTerm[]
}

type FieldReader = (object: KubeObject) => string

/** A condition on a field, and how the field is read. */
interface ReadableTerm extends FieldTerm {
  readonly read: FieldReader
}

const nameOf: FieldReader = (object) => object.metadata.name
const namespaceOf: FieldReader = (object) => object.metadata.namespace ?? ''

function readerOf(field: string, { kind, selectableFields }: SelectableKind): FieldReader {
  const hasOwnFields = Object.keys(selectableFields).length > 0
  if (field === 'metadata.name') return nameOf
  // Kinds with fields of their own list all they know, the others take both of metadata.
  if (field === 'metadata.namespace' && (kind.namespaced || !hasOwnFields)) return namespaceOf
  const reader = Object.hasOwn(selectableFields, field) ? selectableFields[field] : undefined
  if (reader !== undefined) return reader
  throw badRequest(
    hasOwnFields
      ? `field label not supported: ${field}`
      : `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
  )
}

const pinned = (terms: readonly FieldTerm[], field: string): string | undefined =>
  terms.find((term) => term.equal && term.field === field)?.value

/** Parses the `fieldSelector` of a request for a kind; throws a 400. Empty text selects everything. */
export function parseFieldSelector(text: string, definition: SelectableKind): FieldSelector {
  const terms = parseFieldTerms(text).map((term) => ({
    ...term,
    read: readerOf(term.field, definition),
  }))
  const matches = (object: KubeObject): boolean =>
    terms.every(({ read, value, equal }) => (read(object) === value) === equal)
  const pinnedName = pinned(terms, 'metadata.name')
  const pinnedNamespace = pinned(terms, 'metadata.namespace')
  // A second term on the same field is one more than what can be pinned.
  const isPinned =
    terms.length > 0 &&
    terms.length === Number(pinnedName !== undefined) + Number(pinnedNamespace !== undefined)
  return Object.assign(matches, {
    isEverything: terms.length === 0,
    isPinned,
    terms,
    ...(pinnedName !== undefined && { pinnedName }),
    ...(pinnedNamespace !== undefined && { pinnedNamespace }),
  })
}
