import { parse as parseYaml } from 'yaml'
import type { Answer, Case } from './ask.ts'
import { inOrder } from './cause-order.ts'

/** An answer without what differs from one run to the next, ready to be compared. */
export interface SteadyAnswer {
  readonly code: number
  readonly headers: Readonly<Record<string, readonly string[]>>
  readonly body: unknown
}

/** Headers that say something to a client. Others, such as Date, are the business of HTTP. */
const comparedHeaders = [
  'allow',
  'cache-control',
  'content-encoding',
  'content-type',
  'etag',
  'location',
  'retry-after',
  'vary',
  'warning',
  'www-authenticate',
  'x-content-type-options',
  'x-kubernetes-pf-flowschema-uid',
  'x-kubernetes-pf-prioritylevel-uid',
]

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$/
const age = /^(?:\d+[smhd])+$/
const clusterIp = /\b10\.(?:9[6-9]|10\d|11[01])\.\d+\.\d+\b/g
const generatedName = /\b(generated-|g{58})[bcdfghjklmnpqrstvwxz2456789]{5}\b/gi
const dayMs = 24 * 3600 * 1000

/** Numbers inside messages that only this run has. */
const passing: readonly (readonly [RegExp, string])[] = [
  [/(too old resource version: )\d+ \(\d+\)/g, '$1<version> (<version>)'],
  [/(current: |precondition: |object meta: |in record \(|precondition \()\d+/g, '$1<version>'],
]

type Views = Pick<Case, 'view' | 'viewText'>
const same = <T>(value: T): T => value

/** Replaces what is made anew in each run; the same thing keeps the same name within a case. */
export class Steadier {
  readonly #uids = new Map<string, string>()
  readonly #versions = new Map<string, string>()
  readonly #addresses = new Map<string, string>()

  answer(answer: Answer, { view = same, viewText = same }: Views = {}): SteadyAnswer {
    const headers: Record<string, readonly string[]> = {}
    for (const name of comparedHeaders) {
      const values = answer.headers.get(name)
      if (values) headers[name] = values.map((value) => this.#header(name, value))
    }
    const body = answer.events ?? answer.json ?? yamlOf(answer)
    return {
      code: answer.code,
      headers,
      body: this.#value(body === undefined ? viewText(answer.text) : view(body), '', ''),
    }
  }

  #header(name: string, value: string): string {
    return name === 'etag' ? '<etag>' : this.#text(value.replace(uuid, '<uid>'))
  }

  #value(value: unknown, key: string, parent: string): unknown {
    if (typeof value === 'string') return this.#string(value, key, parent)
    if (Array.isArray(value)) return value.map((item) => this.#value(item, '', key))
    if (typeof value !== 'object' || value === null) return value
    if ('type' in value && value.type === 'BOOKMARK')
      return this.#value(withoutVersions(value), '', '')
    const entries = Object.entries(inOrder(value)).sort(([a], [b]) => (a < b ? -1 : 1))
    const owner = ownerName(value, key, parent)
    return Object.fromEntries(entries.map(([name, item]) => [name, this.#field(name, item, owner)]))
  }

  #field(name: string, value: unknown, owner: string): unknown {
    if (name === 'managedFields') return '<managedFields>'
    // Prose of the server, which every server has of its own.
    if (name === 'columnDefinitions' && Array.isArray(value))
      return value.map((column: object) => ({ ...column, description: '<prose>' }))
    return this.#value(value, name, owner)
  }

  #string(value: string, key: string, parent: string): string {
    if (key === 'resourceVersion' && /^[1-9]\d*$/.test(value))
      return parent === 'listMetadata' ? '<version>' : named(this.#versions, value, 'version')
    if (key === 'continue') return '<continue>'
    if (parent === 'cells' && age.test(value)) return '<age>'
    const [, micro] = time.exec(value) ?? [undefined, undefined]
    if (time.test(value) && Math.abs(Date.parse(value) - Date.now()) < dayMs)
      return micro ? '<micro time>' : '<time>'
    return this.#text(value)
  }

  #text(value: string): string {
    let text = value
      .replace(uuid, (uid) => named(this.#uids, uid, 'uid'))
      .replace(clusterIp, (ip) => named(this.#addresses, ip, 'cluster ip'))
      .replace(generatedName, '$1<generated>')
    for (const [pattern, replacement] of passing) text = text.replace(pattern, replacement)
    return text
  }
}

function yamlOf({ headers, text }: Answer): unknown {
  return headers.get('content-type')?.[0] === 'application/yaml' ? parseYaml(text) : undefined
}

function named(names: Map<string, string>, value: string, what: string): string {
  const known = names.get(value)
  if (known !== undefined) return known
  const name = `<${what} ${names.size + 1}>`
  names.set(value, name)
  return name
}

/** A bookmark tells how far a whole collection has come. */
const withoutVersions = (bookmark: object): unknown =>
  JSON.parse(
    JSON.stringify({ ...bookmark, type: 'BOOKMARK ' }, (key, value: unknown) =>
      key === 'resourceVersion' ? '<version>' : value,
    ),
  )

/** Versions of whole collections follow no single object: they are only known to be versions. */
function ownerName(value: object, key: string, parent: string): string {
  if ('kind' in value && /(?:List|Table)$/.test(String(value.kind))) return 'collection'
  return key === 'metadata' && parent === 'collection' ? 'listMetadata' : key
}
