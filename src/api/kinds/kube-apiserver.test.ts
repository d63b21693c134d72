import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { invalid, type KubeObject, systemClock } from '../../core/index.ts'
import { checkStructure, schemaOf } from '../schema/index.ts'
import { renderTable } from '../serving/table.ts'
import {
  toCause,
  validateCreate,
  validateMetadataUpdate,
  validateUpdate,
} from '../validation/index.ts'
import type { KindDefinition } from './define-kind.ts'
import { definitionOfObject } from './index.ts'
import { ServiceIps } from './service/ips.ts'

interface Cause {
  readonly reason: string
  readonly message: string
  readonly field: string
}

interface Answer {
  readonly code: number
  readonly object?: KubeObject
  readonly message?: string
  readonly warnings?: readonly string[]
  readonly causes?: readonly Cause[]
}

interface Case {
  readonly name: string
  readonly send: KubeObject
  readonly stored?: KubeObject
  readonly storedAs?: KubeObject
  readonly subresource?: string
  readonly answer: Answer
}

interface TableCase {
  readonly name: string
  readonly table: KubeObject
  readonly answer: { readonly columns: readonly object[]; readonly row: { object: KubeObject } }
}

const folder = new URL('../../../test/fixtures/kube-apiserver/', import.meta.url)

/** The administrator who recorded the answers. */
const context = {
  user: { username: 'admin', uid: 'admin', groups: ['system:masters', 'system:authenticated'] },
  clock: { ...systemClock, now: () => Date.parse('2026-01-02T03:04:05Z') },
}

/** The decoder's part: fields that Go always writes, none that it never writes. */
function decoded(definition: KindDefinition, sent: KubeObject): KubeObject {
  const schema = schemaOf(definition.kind)
  if (!schema) throw new Error(`no schema for ${definition.kind.kind}`)
  const { apiVersion, kind, metadata } = sent
  const { object } = checkStructure(structuredClone(sent), schema)
  return { ...object, apiVersion, kind, metadata: { ...structuredClone(metadata) } }
}

const serverFields = { uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' }

function create(definition: KindDefinition, { send }: Case) {
  const draft = decoded(definition, send)
  if (definition.kind.namespaced) draft.metadata.namespace ??= 'default'
  definition.applyDefaults(draft)
  definition.prepareCreate(draft, context)
  const addresses = assignAddresses(definition, draft, undefined)
  return { draft, problems: addresses.length > 0 ? addresses : validateCreate(definition, draft) }
}

function update(definition: KindDefinition, testCase: Case) {
  const { send, storedAs, subresource } = testCase
  const stored = structuredClone(storedAs!)
  Object.assign(stored.metadata, { ...serverFields, resourceVersion: '1' })
  const sent = decoded(definition, send)
  const { generation, deletionTimestamp } = stored.metadata
  if (generation !== undefined) sent.metadata.generation = generation
  if (deletionTimestamp !== undefined) sent.metadata.deletionTimestamp = deletionTimestamp
  if (definition.kind.namespaced) sent.metadata.namespace ??= 'default'
  Object.assign(sent.metadata, { ...serverFields, resourceVersion: '1' })
  if (subresource) {
    const part = definition.subresources.find((one) => one.name === subresource)!
    const draft = part.merge(sent, stored, context)
    definition.applyDefaults(draft)
    const problems = [
      ...validateMetadataUpdate(draft, stored),
      ...(part.validate?.(draft, stored) ?? []),
    ]
    return { draft, problems }
  }
  definition.applyDefaults(sent)
  definition.prepareUpdate(sent, stored, context)
  const addresses = assignAddresses(definition, sent, stored)
  const problems = addresses.length > 0 ? addresses : validateUpdate(definition, sent, stored)
  return { draft: sent, problems }
}

/** The registry's part for Services: addresses out of the range that the recorder's server had. */
function assignAddresses(
  definition: KindDefinition,
  draft: KubeObject,
  stored: KubeObject | undefined,
) {
  if (definition.kind.kind !== 'Service') return []
  const ips = new ServiceIps(['10.96.0.0/12'])
  ips.adopt({ ...draft, spec: { clusterIPs: ['10.96.0.1'] } })
  return ips.assign(draft, stored).problems
}

/** An object without what no two servers agree on. */
function comparable(object: KubeObject): unknown {
  const copy = JSON.parse(JSON.stringify(object))
  for (const field of ['uid', 'resourceVersion', 'creationTimestamp', 'generation']) {
    delete copy.metadata[field]
  }
  if (object.kind === 'Service' && copy.spec.clusterIP?.startsWith('10.')) {
    copy.spec.clusterIP = 'any'
    copy.spec.clusterIPs = ['any']
  }
  // Of admission Kubernetes' own plugins have made this; no controller of ours would take it away.
  if (object.kind === 'Node' && copy.spec.taints?.[0].key === 'node.kubernetes.io/not-ready') {
    delete copy.spec.taints
  }
  for (const condition of copy.status?.conditions ?? []) condition.lastTransitionTime &&= 'any'
  return copy
}

/**
 * Kubernetes repeats on an update what it has said about metadata; once is enough. It also adds a
 * difference of its internal structs, from the second line on.
 */
const once = (causes: readonly Cause[]): Cause[] => [
  ...new Map(
    causes.map((cause) => [
      `${cause.field} ${cause.message}`,
      { ...cause, message: cause.message.split('\n')[0]! },
    ]),
  ).values(),
]

/** A message without the difference that Kubernetes adds. */
const steadyMessage = (message: string): string => message.replace(/\n@@[^]*$/, '')

const files = readdirSync(folder).filter((name) => name.endsWith('.json'))

describe.each(files)('%s as a real kube-apiserver answers it [GND-R45] [GND-R62]', (file) => {
  const { cases } = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as {
    cases: (Case | TableCase)[]
  }
  const objects = cases.filter((one): one is Case => 'send' in one)
  const tables = cases.filter((one): one is TableCase => 'table' in one)

  test.each(objects.map((one) => [one.name, one] as const))('%s', (_name, testCase) => {
    const definition = definitionOfObject(testCase.send)!
    const { draft, problems } = testCase.storedAs
      ? update(definition, testCase)
      : create(definition, testCase)
    const { answer } = testCase
    const causes = problems.map(toCause)
    const { name } = testCase.send.metadata
    const { deprecation, warnings } = definition
    const written = causes.length > 0 ? [] : (warnings?.(draft) ?? [])
    expect({
      warnings: [...(deprecation ? [deprecation] : []), ...written],
      message: causes.length > 0 ? invalid(definition.kind, name, causes).message : undefined,
      causes,
      object: answer.object && comparable(draft),
    }).toEqual({
      warnings: answer.warnings ?? [],
      message: answer.message && steadyMessage(answer.message),
      causes: once(answer.causes ?? []),
      object: answer.object && comparable(answer.object),
    })
  })

  test.each(tables.map((one) => [one.name, one] as const))('%s [GND-R59]', (_name, testCase) => {
    const definition = definitionOfObject(testCase.table)!
    const { row, columns } = testCase.answer
    const object = decoded(definition, testCase.table)
    Object.assign(object.metadata, row.object.metadata)
    const now = Date.parse(object.metadata.creationTimestamp!)
    const { status } = object
    definition.applyDefaults(object)
    definition.prepareCreate(object, context)
    if (testCase.table['status']) object['status'] = status
    const table = renderTable(definition, [object], {
      includeObject: 'Metadata',
      listMeta: {},
      now,
      includeHeaders: true,
    })
    const described = columns.map((column) => ({ ...column, description: expect.any(String) }))
    expect(table.columnDefinitions).toEqual(described)
    expect(table.rows[0]).toEqual(row)
  })
})
