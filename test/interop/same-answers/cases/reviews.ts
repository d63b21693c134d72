import { type Case, cases, media, post, type Topic } from '../ask.ts'

const authorization = '/apis/authorization.k8s.io/v1'
const authentication = '/apis/authentication.k8s.io/v1'
const review = (kind: string, spec: unknown, group = 'authorization.k8s.io') => ({
  apiVersion: `${group}/v1`,
  kind,
  spec,
})
const pods = { verb: 'get', resource: 'pods', namespace: 'default' }

const self = (spec: unknown) => review('SelfSubjectAccessReview', spec)
const selfPath = `${authorization}/selfsubjectaccessreviews`
const subject = (spec: unknown) => review('SubjectAccessReview', spec)
const subjectPath = `${authorization}/subjectaccessreviews`
const local = (spec: unknown, metadata?: object) => ({
  ...review('LocalSubjectAccessReview', spec),
  ...(metadata && { metadata }),
})
const localPath = `${authorization}/namespaces/{ns}/localsubjectaccessreviews`
const rulesPath = `${authorization}/selfsubjectrulesreviews`
const tokenPath = `${authentication}/tokenreviews`
const token = (spec: unknown) => review('TokenReview', spec, 'authentication.k8s.io')
const whoPath = `${authentication}/selfsubjectreviews`
const who = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }

/** Both lists of rules hang together with the default roles: only the shape is compared here. */
const shapeOfRules = (json: unknown): unknown => {
  const { status, ...rest } = json as { status?: Record<string, unknown> }
  if (!status || typeof status !== 'object') return json
  return {
    ...rest,
    status: {
      ...status,
      resourceRules: Array.isArray(status['resourceRules']),
      nonResourceRules: Array.isArray(status['nonResourceRules']),
    },
  }
}

const rules: Case = {
  name: 'SelfSubjectRulesReview',
  steps: [
    post(rulesPath, review('SelfSubjectRulesReview', { namespace: 'default' })),
    post(rulesPath, review('SelfSubjectRulesReview', {})),
    post(rulesPath, review('SelfSubjectRulesReview', { namespace: '' })),
    post(rulesPath, review('SelfSubjectRulesReview', { namespace: 'default' }), { as: 'visitor' }),
  ],
  view: shapeOfRules,
}

/** The six reviews, good and bad. */
export const reviews: Topic = {
  name: 'reviews',
  cases: [
    rules,
    ...cases({
      SelfSubjectAccessReview: [
        post(selfPath, self({ resourceAttributes: pods })),
        post(selfPath, self({ resourceAttributes: pods }), { as: 'visitor' }),
        post(selfPath, self({ resourceAttributes: { ...pods, version: 'v1', name: 'x' } })),
        post(selfPath, self({ nonResourceAttributes: { path: '/apis', verb: 'get' } }), {
          as: 'visitor',
        }),
        post(selfPath, self({ nonResourceAttributes: { path: '/logs', verb: 'get' } }), {
          as: 'visitor',
        }),
        post(selfPath, self({ resourceAttributes: {} })),
        post(selfPath, self({ resourceAttributes: { verb: '*', resource: '*', group: '*' } })),
      ],
      'SelfSubjectAccessReview that is wrong': [
        post(selfPath, self({})),
        post(selfPath, self(undefined)),
        post(selfPath, self({ resourceAttributes: pods, nonResourceAttributes: { path: '/' } })),
        post(selfPath, self({ resourceAttributes: pods, extra: 1 })),
        post(selfPath, self('x')),
        post(selfPath, self(null)),
        post(selfPath, {}),
        post(selfPath, subject({ resourceAttributes: pods, user: 'x' })),
        post(selfPath, { ...self({ resourceAttributes: pods }), apiVersion: 'v1' }),
        post(selfPath, { ...self({ resourceAttributes: pods }), metadata: { name: 'n' } }),
        post(selfPath, {
          ...self({ resourceAttributes: pods }),
          metadata: { labels: { a: 'b' }, namespace: 'x' },
        }),
        post(selfPath, '{'),
        post(selfPath, ''),
      ],
      'SelfSubjectAccessReview with selectors': [
        post(
          selfPath,
          self({
            resourceAttributes: {
              ...pods,
              fieldSelector: { requirements: [{ key: 'a', operator: 'In', values: ['b'] }] },
              labelSelector: { rawSelector: 'a=b' },
            },
          }),
        ),
        post(
          selfPath,
          self({
            resourceAttributes: {
              ...pods,
              fieldSelector: {
                rawSelector: 'x',
                requirements: [{ key: '', operator: 'Odd', values: [] }],
              },
            },
          }),
        ),
        post(selfPath, self({ resourceAttributes: { ...pods, labelSelector: {} } })),
      ],
      SubjectAccessReview: [
        post(subjectPath, subject({ resourceAttributes: pods, user: 'somebody' })),
        post(
          subjectPath,
          subject({ resourceAttributes: pods, user: 'somebody', groups: ['system:masters'] }),
        ),
        post(subjectPath, subject({ resourceAttributes: pods, groups: ['some-team'] })),
        post(
          subjectPath,
          subject({ resourceAttributes: pods, user: 'somebody', uid: 'u', extra: { a: ['b'] } }),
        ),
        post(
          subjectPath,
          subject({ nonResourceAttributes: { path: '/apis', verb: 'get' }, user: 'somebody' }),
        ),
        post(
          subjectPath,
          subject({
            nonResourceAttributes: { path: '/apis', verb: 'get' },
            groups: ['system:authenticated'],
          }),
        ),
        post(
          subjectPath,
          subject({
            resourceAttributes: { ...pods, group: 'apps', subresource: 'status' },
            user: 'somebody',
          }),
        ),
      ],
      'SubjectAccessReview that is wrong': [
        post(subjectPath, subject({ resourceAttributes: pods })),
        post(subjectPath, subject({ user: 'somebody' })),
        post(subjectPath, subject({})),
        post(
          subjectPath,
          subject({
            user: 'somebody',
            resourceAttributes: pods,
            nonResourceAttributes: { path: '/' },
          }),
        ),
        post(subjectPath, subject({ user: 5, resourceAttributes: pods })),
        post(subjectPath, { ...subject({ user: 'x', resourceAttributes: pods }), kind: 'Pod' }),
      ],
      'SubjectAccessReview without the right to ask': post(
        subjectPath,
        subject({ resourceAttributes: pods, user: 'somebody' }),
        { as: 'visitor' },
      ),
      LocalSubjectAccessReview: [
        post(
          localPath,
          local({ resourceAttributes: { ...pods, namespace: '{ns}' }, user: 'somebody' }),
        ),
        post(localPath, local({ resourceAttributes: pods, user: 'somebody' })),
        post(
          localPath,
          local({ resourceAttributes: { verb: 'get', resource: 'pods' }, user: 'j' }),
        ),
        post(localPath, local({ nonResourceAttributes: { path: '/' }, user: 'somebody' })),
        post(localPath, local({ resourceAttributes: { namespace: '{ns}' } })),
        post(
          localPath,
          local({ resourceAttributes: { namespace: '{ns}' }, user: 'j' }, { namespace: 'other' }),
        ),
        post(localPath, local({})),
      ],
      TokenReview: [
        post(tokenPath, token({ token: 'nonsense' })),
        post(tokenPath, token({ token: '' })),
        post(tokenPath, token({})),
        post(tokenPath, token({ token: 'nonsense', audiences: ['a'] })),
        post(tokenPath, token({ token: 'a.b.c' })),
        post(tokenPath, { ...token({ token: 'nonsense' }), metadata: { name: 'x' } }),
        post(tokenPath, token({ token: 5 })),
        post(tokenPath, token({ token: 'nonsense' }), { as: 'visitor' }),
      ],
      SelfSubjectReview: [
        post(whoPath, who),
        post(whoPath, who, { as: 'visitor' }),
        post(whoPath, who, { as: 'nobody' }),
        post(whoPath, {}),
        post(whoPath, ''),
        post(whoPath, { ...who, metadata: { name: 'x' } }),
        post(whoPath, { ...who, status: { userInfo: { username: 'forged' } } }),
        post(whoPath, who, { accept: media.table }),
        post(whoPath, who, { accept: media.metadata }),
        post(whoPath, who, { accept: media.yaml }),
      ],
      'options of reviews': [
        post(`${whoPath}?dryRun=All`, who),
        post(`${whoPath}?dryRun=Some`, who),
        post(`${whoPath}?fieldValidation=Strict`, { ...who, x: 1 }),
        post(`${whoPath}?fieldValidation=Warn`, { ...who, x: 1 }),
        post(`${whoPath}?fieldValidation=Odd`, who),
        post(`${whoPath}?pretty=true`, who),
        post(`${selfPath}?dryRun=All`, self({ resourceAttributes: pods })),
        post(`${selfPath}?fieldValidation=Strict`, self({ resourceAttributes: pods, x: 1 })),
      ],
    }),
  ],
}
