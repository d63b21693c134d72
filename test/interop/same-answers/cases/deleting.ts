import { cases, del, get, media, post, type Step, type Topic } from '../ask.ts'
import { collectionOf, configMap, configMaps, objectOf, storedKind } from '../kinds.ts'

const made = (name: string, ...steps: Step[]): Step[] => [
  post(configMaps, configMap(name)),
  ...steps,
]
const own = (name: string, query = ''): string => `${configMaps}/${name}${query}`
const pods = collectionOf(storedKind('Pod'))
const pod = (name: string, more: object = {}) =>
  objectOf(storedKind('Pod'), name, {
    spec: { containers: [{ name: 'c', image: 'nginx' }], ...more },
  })
const labelled = (name: string, set: string) => configMap(name, { metadata: { labels: { set } } })
const deleteOptions = { kind: 'DeleteOptions', apiVersion: 'v1' }

/** Deletions of objects and collections. */
export const deleting: Topic = {
  name: 'deleting',
  cases: cases({
    'without a body': made('plain', del(own('plain')), del(own('plain'))),
    'with an empty body': made('empty', del(own('empty'), '', { type: media.json })),
    'with an empty object': made('object', del(own('object'), {})),
    'with options of the API': made('options', del(own('options'), deleteOptions)),
    'with options of meta.k8s.io': made(
      'meta',
      del(own('meta'), { ...deleteOptions, apiVersion: 'meta.k8s.io/v1' }),
    ),
    'with options of another group': made(
      'apps',
      del(own('apps'), { ...deleteOptions, apiVersion: 'apps/v1' }),
    ),
    'with options of an unknown group': made(
      'nonsense',
      del(own('nonsense'), { ...deleteOptions, apiVersion: 'nonsense/v1' }),
    ),
    'with a body of another kind': made('kind', del(own('kind'), configMap('kind'))),
    'with a body that is not JSON': made('broken', del(own('broken'), '{')),
    'with a body of an unknown type': made(
      'type',
      del(own('type'), 'x', { type: 'text/plain' }),
      del(own('type'), {}, { type: '' }),
    ),
    'with YAML': made(
      'yaml',
      del(own('yaml'), 'propagationPolicy: Background\n', { type: media.yaml }),
    ),
    'with unknown fields': made('unknown', del(own('unknown'), { nonsense: true })),
    'with fields of wrong types': made('types', del(own('types'), { gracePeriodSeconds: 'x' })),
    'dry run in the query': made('dry', del(own('dry', '?dryRun=All')), get(own('dry'))),
    'dry run in the body': made('dry-body', del(own('dry-body'), { dryRun: ['All'] })),
    'dry run in the query beside a body': made(
      'dry-both',
      del(own('dry-both', '?dryRun=All'), { propagationPolicy: 'Background' }),
      get(own('dry-both')),
    ),
    'dry run of an unknown sort': made(
      'dry-wrong',
      del(own('dry-wrong'), { dryRun: ['Some'] }),
      del(own('dry-wrong', '?dryRun=Some')),
      del(own('dry-wrong'), { dryRun: 'All' }),
    ),
    'propagation in the query': made('orphan', del(own('orphan', '?propagationPolicy=Orphan'))),
    'foreground propagation': made('fore', del(own('fore'), { propagationPolicy: 'Foreground' })),
    'background propagation': made('back', del(own('back'), { propagationPolicy: 'Background' })),
    'propagation unknown': made(
      'twist',
      del(own('twist'), { propagationPolicy: 'Twist' }),
      del(own('twist', '?propagationPolicy=Twist')),
      del(own('twist'), { propagationPolicy: '' }),
    ),
    'orphanDependents true': made('old-orphan', del(own('old-orphan'), { orphanDependents: true })),
    'orphanDependents false': made('old-back', del(own('old-back'), { orphanDependents: false })),
    'orphanDependents in the query': made(
      'old-query',
      del(own('old-query', '?orphanDependents=maybe')),
    ),
    'orphanDependents=false in the query': made(
      'old-query-2',
      del(own('old-query-2', '?orphanDependents=false')),
    ),
    'both propagation and orphanDependents': made(
      'both',
      del(own('both'), { orphanDependents: true, propagationPolicy: 'Orphan' }),
    ),
    'grace period': made(
      'grace',
      del(own('grace', '?gracePeriodSeconds=x')),
      del(own('grace'), { gracePeriodSeconds: -1 }),
    ),
    'grace period in the query': made('grace-2', del(own('grace-2', '?gracePeriodSeconds=30'))),
    'a Pod on no node, with grace': [
      post(pods, pod('grace')),
      del(`${pods}/grace?dryRun=All`, undefined),
      del(`${pods}/grace`, { gracePeriodSeconds: 5 }),
      get(`${pods}/grace`),
    ],
    'a Pod on a node, with grace': [
      post(pods, pod('on-node', { nodeName: 'n1' })),
      del(`${pods}/on-node`, { gracePeriodSeconds: 5 }),
      get(`${pods}/on-node`),
      del(`${pods}/on-node`, { gracePeriodSeconds: 2 }),
      del(`${pods}/on-node`, { gracePeriodSeconds: 9 }),
      del(`${pods}/on-node`, { gracePeriodSeconds: 0 }),
      get(`${pods}/on-node`),
    ],
    'a Pod on a node, with its own grace': [
      post(pods, pod('own-grace', { nodeName: 'n1', terminationGracePeriodSeconds: 7 })),
      del(`${pods}/own-grace`),
      del(`${pods}/own-grace`),
    ],
    'answers in other forms': made(
      'forms',
      del(own('forms', '?dryRun=All'), undefined, { accept: media.table }),
      del(own('forms', '?dryRun=All'), undefined, { accept: media.metadata }),
      del(own('forms'), undefined, { accept: media.yaml }),
    ),
    'a namespace that is not there': del('/api/v1/namespaces/nowhere/configmaps/x'),
    'the namespaces of the cluster itself': [
      del('/api/v1/namespaces/default'),
      del('/api/v1/namespaces/kube-system'),
      del('/api/v1/namespaces/kube-public'),
      del('/api/v1/namespaces/kube-node-lease?dryRun=All'),
    ],
    'a namespace with conditions': [
      post('/api/v1/namespaces', objectOf(storedKind('Namespace'), 'same-doomed', {})),
      del('/api/v1/namespaces/same-doomed', { preconditions: { resourceVersion: '1' } }),
      del('/api/v1/namespaces/same-doomed', {
        preconditions: { uid: '11111111-2222-3333-4444-555555555555' },
      }),
    ],
    'a collection by label': [
      post(configMaps, labelled('c1', 'one')),
      post(configMaps, labelled('c2', 'one')),
      post(configMaps, labelled('c3', 'two')),
      del(`${configMaps}?labelSelector=set%3Done&dryRun=All`),
      del(`${configMaps}?labelSelector=set%3Done`),
      get(`${configMaps}?labelSelector=set+in+(one,two)`),
    ],
    'a collection by field': [
      post(configMaps, labelled('f1', 'fields')),
      post(configMaps, labelled('f2', 'fields')),
      del(`${configMaps}?fieldSelector=metadata.name%3Df1`),
      get(`${configMaps}?labelSelector=set%3Dfields`),
    ],
    'a collection with options': [
      post(configMaps, labelled('o1', 'options')),
      del(`${configMaps}?labelSelector=set%3Doptions`, { dryRun: ['All'] }),
      del(`${configMaps}?labelSelector=set%3Doptions`, { propagationPolicy: 'Twist' }),
      del(`${configMaps}?labelSelector=set%3Doptions`, { preconditions: { uid: 'x' } }),
      del(`${configMaps}?labelSelector=set%3Doptions`, '{', {}),
      del(`${configMaps}?labelSelector=set%3Doptions`, '', { type: media.protobuf }),
      get(`${configMaps}?labelSelector=set%3Doptions`),
    ],
    'a collection with a limit': [
      post(configMaps, labelled('l1', 'limit')),
      post(configMaps, labelled('l2', 'limit')),
      del(`${configMaps}?labelSelector=set%3Dlimit&limit=1`),
      get(`${configMaps}?labelSelector=set%3Dlimit`),
    ],
    'a collection that is empty': del(`${configMaps}?labelSelector=set%3Dnone`),
    'a collection with finalizers': [
      post(configMaps, {
        ...configMap('h1'),
        metadata: { name: 'h1', labels: { set: 'hold' }, finalizers: ['example.com/hold'] },
      }),
      del(`${configMaps}?labelSelector=set%3Dhold`),
      get(`${configMaps}/h1`),
    ],
    'a collection with wrong selectors': [
      del(`${configMaps}?labelSelector=%3D%3D`),
      del(`${configMaps}?fieldSelector=nonsense%3D1`),
      del(`${configMaps}?limit=x`),
    ],
    'a collection as a table': [
      post(configMaps, labelled('t1', 'table')),
      del(`${configMaps}?labelSelector=set%3Dtable`, undefined, { accept: media.table }),
    ],
    'a collection across namespaces': del('/api/v1/configmaps?labelSelector=set%3Dnone'),
    'the collection of namespaces': del('/api/v1/namespaces?labelSelector=set%3Dnone'),
    'a collection of Pods': [
      post(pods, { ...pod('p1'), metadata: { name: 'p1', labels: { set: 'pods' } } }),
      del(`${pods}?labelSelector=set%3Dpods`, { gracePeriodSeconds: 0 }),
      get(`${pods}?labelSelector=set%3Dpods`),
    ],
    'every kind as a collection': [
      'Secret',
      'ServiceAccount',
      'Service',
      'Endpoints',
      'EndpointSlice',
      'Node',
      'Event',
      'Lease',
      'Role',
      'ClusterRole',
      'RoleBinding',
      'ClusterRoleBinding',
      'CertificateSigningRequest',
    ].map((kind) => del(`${collectionOf(storedKind(kind))}?labelSelector=set%3Dnone`)),
  }),
}
