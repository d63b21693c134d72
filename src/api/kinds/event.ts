import type { KubeObject } from '../../core/index.ts'
import {
  type FieldProblem,
  invalidEach,
  invalidValue,
  required,
} from '../validation/field-problem.ts'
import { qualifiedNameProblems } from '../validation/metadata.ts'
import { nameIsPathSegment } from '../validation/names.ts'
import { column, defineKind, timeSince, wideColumn } from './define-kind.ts'
import { fieldsAt, isUnset, numberAt, textAt } from './fields.ts'

const involved = (object: KubeObject) => fieldsAt(object, 'involvedObject')

/** How many characters the texts of an event with an `eventTime` may have. */
const lengthLimits = { reportingInstance: 128, action: 128, reason: 128, message: 1024 } as const

const lengthProblems = (draft: KubeObject, field: keyof typeof lengthLimits): FieldProblem[] => {
  const limit = lengthLimits[field]
  return Buffer.byteLength(textAt(draft, field)) > limit
    ? [invalidValue(field, '', `can have at most ${limit} characters`)]
    : []
}

const neededText = (draft: KubeObject, field: string): FieldProblem[] =>
  textAt(draft, field) ? [] : [required(field)]

function newStyleProblems(draft: KubeObject): FieldProblem[] {
  const reporter = textAt(draft, 'reportingComponent')
  return [
    ...neededText(draft, 'reportingComponent'),
    ...invalidEach('reportingComponent', reporter, qualifiedNameProblems(reporter)),
    ...neededText(draft, 'reportingInstance'),
    ...lengthProblems(draft, 'reportingInstance'),
    ...neededText(draft, 'action'),
    ...lengthProblems(draft, 'action'),
    ...neededText(draft, 'reason'),
    ...lengthProblems(draft, 'reason'),
    ...lengthProblems(draft, 'message'),
  ]
}

function namespaceMatches(draft: KubeObject, isNewStyle: boolean): boolean {
  const own = draft.metadata.namespace ?? ''
  const of = textAt(involved(draft), 'namespace')
  // Objects without a namespace have their events in the default one.
  if (of === '') return own === 'default' || (isNewStyle && own === 'kube-system')
  return isNewStyle || of === own
}

function validate(draft: KubeObject): FieldProblem[] {
  const isNewStyle = !isUnset(draft['eventTime'])
  const field = 'involvedObject.namespace'
  return [
    ...(namespaceMatches(draft, isNewStyle)
      ? []
      : [
          invalidValue(
            field,
            textAt(involved(draft), 'namespace'),
            'does not match event.namespace',
          ),
        ]),
    ...(isNewStyle ? newStyleProblems(draft) : []),
  ]
}

function sourceOf(object: KubeObject): string {
  const source = fieldsAt(object, 'source')
  const component = textAt(source, 'component') || textAt(object, 'reportingComponent')
  const host = textAt(source, 'host') || textAt(object, 'reportingInstance')
  return host ? `${component}, ${host}` : component
}

function targetOf(object: KubeObject): string {
  const kind = textAt(involved(object), 'kind').toLowerCase()
  const name = textAt(involved(object), 'name')
  return name ? `${kind}/${name}` : kind
}

const firstSeen = (object: KubeObject, now: number): string =>
  timeSince(object['firstTimestamp'] ?? object['eventTime'], now)

function lastSeen(object: KubeObject, now: number): string {
  if (!isUnset(object['series']))
    return timeSince(fieldsAt(object, 'series')['lastObservedTime'], now)
  return isUnset(object['lastTimestamp'])
    ? firstSeen(object, now)
    : timeSince(object['lastTimestamp'], now)
}

const countOf = (object: KubeObject): number =>
  isUnset(object['series'])
    ? numberAt(object, 'count') || 1
    : (numberAt(fieldsAt(object, 'series'), 'count') ?? 0)

const involvedFields = [
  'kind',
  'namespace',
  'name',
  'uid',
  'apiVersion',
  'resourceVersion',
  'fieldPath',
]

/** Something that happened to an object. */
export const event = defineKind({
  kind: { group: '', version: 'v1', kind: 'Event', resource: 'events', namespaced: true },
  shortNames: ['ev'],
  createOnUpdate: true,
  nameProblems: nameIsPathSegment,
  selectableFields: {
    ...Object.fromEntries(
      involvedFields.map((field) => [
        `involvedObject.${field}`,
        (object: KubeObject) => textAt(involved(object), field),
      ]),
    ),
    reason: (object) => textAt(object, 'reason'),
    reportingComponent: (object) => textAt(object, 'reportingComponent'),
    source: (object) =>
      textAt(fieldsAt(object, 'source'), 'component') || textAt(object, 'reportingComponent'),
    type: (object) => textAt(object, 'type'),
  },
  validate,
  columns: [
    column('Last Seen', 'Time since it happened last.', lastSeen),
    column('Type', 'Normal or Warning.', (object) => textAt(object, 'type')),
    column('Reason', 'Why it happened, in one word.', (object) => textAt(object, 'reason')),
    column('Object', 'What it happened to.', targetOf),
    wideColumn('Subobject', 'The part of the object.', (object) =>
      textAt(involved(object), 'fieldPath'),
    ),
    wideColumn('Source', 'Who reports it.', sourceOf),
    column('Message', 'What happened, for people.', (object) => textAt(object, 'message').trim()),
    wideColumn('First Seen', 'Time since it happened first.', firstSeen),
    wideColumn('Count', 'How often it happened.', countOf),
    {
      ...wideColumn('Name', 'Name of the event.', (object) => object.metadata.name),
      format: 'name',
    },
  ],
})
