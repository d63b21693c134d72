import { describe, expect, test } from 'vitest'
import { toCause } from '../validation/index.ts'
import { accessReviewProblems } from './access-review.ts'

type Kind = 'LocalSubjectAccessReview' | 'SelfSubjectAccessReview' | 'SubjectAccessReview'

function problems(kind: Kind, spec: unknown, metadata: object = {}): string[] {
  const object = {
    apiVersion: 'authorization.k8s.io/v1',
    kind,
    metadata: { name: '', ...metadata },
    spec,
  }
  return accessReviewProblems(object)
    .map(toCause)
    .map(({ field, message }) => `${field}: ${message}`)
}

const pods = { verb: 'get', resource: 'pods', namespace: 'a' }

describe('an access review that is right has no problems [GND-R46]', () => {
  test.each<[Kind, unknown, object]>([
    ['SelfSubjectAccessReview', { resourceAttributes: pods }, {}],
    ['SubjectAccessReview', { nonResourceAttributes: { path: '/' }, groups: ['g'] }, {}],
    ['LocalSubjectAccessReview', { resourceAttributes: pods, user: 'u' }, { namespace: 'a' }],
    [
      'SelfSubjectAccessReview',
      {
        resourceAttributes: {
          ...pods,
          fieldSelector: { requirements: [{ key: 'a', operator: 'Newer' }] },
          labelSelector: { rawSelector: 'a=b' },
        },
      },
      {},
    ],
  ])('%s %j', (kind, spec, metadata) => {
    expect(problems(kind, spec, metadata)).toEqual([])
  })
})

describe('an access review that is wrong says all that is wrong [GND-R46, GND-R62]', () => {
  const neither =
    'spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified'
  const nobody = 'spec.user: Invalid value: "": at least one of user or group must be specified'

  test.each<[string, Kind, unknown, object, string[]]>([
    ['nothing asked about nobody', 'SubjectAccessReview', {}, {}, [neither, nobody]],
    ['nothing asked about oneself', 'SelfSubjectAccessReview', {}, {}, [neither]],
    [
      'both sorts of attributes',
      'SelfSubjectAccessReview',
      { resourceAttributes: pods, nonResourceAttributes: { path: '/' } },
      {},
      [
        'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":""}: cannot be specified in combination with resourceAttributes',
      ],
    ],
    [
      'a path in a namespace',
      'LocalSubjectAccessReview',
      { nonResourceAttributes: { path: '/' }, user: 'u' },
      { namespace: 'a' },
      [
        'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":""}: disallowed on this kind of request',
      ],
    ],
    [
      'another namespace',
      'LocalSubjectAccessReview',
      { resourceAttributes: pods, user: 'u' },
      { namespace: 'b' },
      ['spec.resourceAttributes.namespace: Invalid value: "a": must match metadata.namespace'],
    ],
    [
      'metadata',
      'SelfSubjectAccessReview',
      { resourceAttributes: pods },
      { labels: { a: 'b' } },
      ['metadata: Invalid value: {"labels":{"a":"b"}}: must be empty'],
    ],
    [
      'selectors',
      'SelfSubjectAccessReview',
      {
        resourceAttributes: {
          ...pods,
          fieldSelector: { rawSelector: 'x', requirements: [{ key: '', operator: 'In' }] },
          labelSelector: {},
        },
      },
      {},
      [
        'spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: "x": may not specified at the same time as requirements',
        'spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified',
        "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        'spec.resourceAttributes.labelSelector.requirements: Required value: when spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required',
      ],
    ],
  ])('%s', (_name, kind, spec, metadata, expected) => {
    expect(problems(kind, spec, metadata)).toEqual(expected)
  })
})
