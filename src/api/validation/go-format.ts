import { goQuote } from '../../core/index.ts'

// Go's JSON encoder escapes what could end a script element.
const htmlEscapes: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
}

/** A value as Kubernetes shows it in messages: quoted text, plain numbers, JSON for the rest. */
export function goValue(value: unknown): string {
  if (typeof value === 'string') return goQuote(value)
  if (value === undefined) return 'null'
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (char) => htmlEscapes[char] ?? char)
}

/**
 * A struct as Kubernetes shows it where it prints its internal form: Go's field names, absent text as
 * empty. `names` maps them to the names that JSON uses.
 */
export const asGoStruct = (
  fields: Readonly<Record<string, unknown>>,
  names: Readonly<Record<string, string>>,
  absent: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(names).map(([goName, jsonName]) => [
      goName,
      fields[jsonName] ?? (jsonName in absent ? absent[jsonName] : ''),
    ]),
  )
