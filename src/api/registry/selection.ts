import type { Kind, KubeObject } from '../../core/index.ts'
import type { StoredRecord } from '../../storage/index.ts'
import type { KindDefinition } from '../kinds/define-kind.ts'
import {
  type FieldSelector,
  type LabelSelector,
  type Labels,
  parseFieldSelector,
  parseLabelSelector,
} from '../selectors/index.ts'
import { decodeObject, keyOf } from './object-bytes.ts'

/** Tells of a stored record whether a request's selectors mean it. */
export interface Selection {
  readonly isEverything: boolean
  matches(record: StoredRecord): boolean
}

const everything: Selection = { isEverything: true, matches: () => true }

const noLabels: Labels = Object.freeze({})
// Labels are asked for again and again by lists and watches; the rest of the object is not kept.
const labelsOfRecord = new WeakMap<StoredRecord, Labels>()

function labelsOf(kind: Kind, record: StoredRecord): Labels {
  const known = labelsOfRecord.get(record)
  if (known) return known
  const labels = record.value.includes('"labels":{')
    ? (decodeObject(kind, record).metadata.labels ?? noLabels)
    : noLabels
  labelsOfRecord.set(record, labels)
  return labels
}

// As with labels: each of thousands of watchers would otherwise decode the same object.
const fieldsOfRecord = new WeakMap<StoredRecord, Map<string, string>>()

function matchesFields(kind: Kind, record: StoredRecord, { terms }: FieldSelector): boolean {
  const known = fieldsOfRecord.get(record) ?? new Map<string, string>()
  fieldsOfRecord.set(record, known)
  let object: KubeObject | undefined
  return terms.every(({ field, read, value, equal }) => {
    let found = known.get(field)
    if (found === undefined) {
      object ??= decodeObject(kind, record)
      found = read(object)
      known.set(field, found)
    }
    return (found === value) === equal
  })
}

function combine(kind: Kind, labels: LabelSelector, fields: FieldSelector): Selection {
  const { pinnedName, pinnedNamespace } = fields
  return {
    isEverything: false,
    matches(record) {
      const key = keyOf(kind, record.key)
      if (pinnedName !== undefined && key.name !== pinnedName) return false
      if (pinnedNamespace !== undefined && (key.namespace ?? '') !== pinnedNamespace) return false
      if (!labels.isEverything && !labels(labelsOf(kind, record))) return false
      return fields.isEverything || fields.isPinned || matchesFields(kind, record, fields)
    },
  }
}

/** The selection that a request's `labelSelector` and `fieldSelector` state; throws a 400. */
export function selectionOf(
  definition: KindDefinition,
  query: { readonly labelSelector?: string; readonly fieldSelector?: string },
): Selection {
  const labels = parseLabelSelector(query.labelSelector ?? '')
  const fields = parseFieldSelector(query.fieldSelector ?? '', definition)
  return labels.isEverything && fields.isEverything
    ? everything
    : combine(definition.kind, labels, fields)
}
