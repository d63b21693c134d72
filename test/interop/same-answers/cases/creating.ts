import { cases, get, media, post, put, type Topic } from '../ask.ts'
import { collectionOf, configMap, configMaps, objectOf, storedKind } from '../kinds.ts'

const long = 'n'.repeat(254)
const clusterRoles = collectionOf(storedKind('ClusterRole'))
const clusterRole = (name: string, metadata: object = {}) =>
  objectOf(storedKind('ClusterRole'), name, { metadata })
const named = (metadata: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata })
const owner = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: 'o',
  uid: '11111111-2222-3333-4444-555555555555',
}

/** Creation: names, namespaces, kinds, options, and what is wrong with them. */
export const creating: Topic = {
  name: 'creating',
  cases: cases({
    'a name that is there already': [
      post(configMaps, configMap('twice')),
      post(configMaps, configMap('twice')),
      post(`${configMaps}?dryRun=All`, configMap('twice')),
    ],
    'a dry run stores nothing': [
      post(`${configMaps}?dryRun=All`, configMap('dry')),
      get(`${configMaps}/dry`),
    ],
    'dryRun with a value that is unknown': post(`${configMaps}?dryRun=Some`, configMap('dry')),
    'dryRun empty': post(`${configMaps}?dryRun=`, configMap('dry-empty')),
    'dryRun twice': post(`${configMaps}?dryRun=All&dryRun=All`, configMap('dry-twice')),
    'dryRun with good and bad values': post(
      `${configMaps}?dryRun=All&dryRun=None`,
      configMap('dry-mixed'),
    ),
    'update with dryRun unknown': put(`${configMaps}/x?dryRun=Some`, configMap('x')),
    generateName: post(configMaps, named({ generateName: 'generated-' })),
    'generateName and name': post(configMaps, named({ generateName: 'generated-', name: 'both' })),
    'generateName that is invalid': post(configMaps, named({ generateName: 'Generated-' })),
    'generateName that is long': post(configMaps, named({ generateName: 'g'.repeat(240) })),
    'generateName of a cluster-scoped kind': post(clusterRoles, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { generateName: 'generated-' },
    }),
    'no name': post(configMaps, named({})),
    'no metadata': post(configMaps, { apiVersion: 'v1', kind: 'ConfigMap' }),
    'metadata null': post(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: null }),
    'an invalid name': post(configMaps, configMap('Not_Valid')),
    'a name too long': post(configMaps, configMap(long)),
    'a name with a slash': post(configMaps, configMap('a/b')),
    'a name with a percent sign in a path-segment kind': post(clusterRoles, clusterRole('a%b')),
    'a name that is a dot': post(clusterRoles, clusterRole('.')),
    'a name that is two dots': post(clusterRoles, clusterRole('..')),
    'a name with a slash in a path-segment kind': post(clusterRoles, clusterRole('a/b')),
    'a name with colons in a path-segment kind': [
      post(clusterRoles, clusterRole('same:creating:colons')),
      get(`${clusterRoles}/same:creating:colons`),
    ],
    'the namespace in the body differs': post(
      configMaps,
      named({ name: 'elsewhere', namespace: 'default' }),
    ),
    'the namespace in the body is the same': post(
      configMaps,
      named({ name: 'same-place', namespace: '{ns}' }),
    ),
    'a namespace on a cluster-scoped kind': post(
      clusterRoles,
      clusterRole('same-namespaced', { namespace: 'default' }),
    ),
    'a namespace that does not exist': post(
      '/api/v1/namespaces/nowhere/configmaps',
      configMap('lost'),
    ),
    'a namespace that does not exist, invalid object': post(
      '/api/v1/namespaces/nowhere/configmaps',
      configMap('Not_Valid'),
    ),
    'a namespace that does not exist, dry run': post(
      '/api/v1/namespaces/nowhere/configmaps?dryRun=All',
      configMap('lost'),
    ),
    'an invalid namespace in the URL': post(
      '/api/v1/namespaces/Not_Valid/configmaps',
      configMap('lost'),
    ),
    'no namespace in the URL': post('/api/v1/configmaps', configMap('nowhere')),
    'no namespace in the URL but in the body': post(
      '/api/v1/configmaps',
      named({ name: 'body-only', namespace: 'default' }),
    ),
    'a resourceVersion': post(configMaps, named({ name: 'versioned', resourceVersion: '5' })),
    'resourceVersion 0': post(configMaps, named({ name: 'versioned-0', resourceVersion: '0' })),
    'fields that the server decides': post(
      configMaps,
      named({
        name: 'forged',
        uid: '11111111-2222-3333-4444-555555555555',
        creationTimestamp: '2001-01-01T00:00:00Z',
        deletionTimestamp: '2001-01-01T00:00:00Z',
        deletionGracePeriodSeconds: 5,
        generation: 7,
        selfLink: '/x',
      }),
    ),
    'managedFields in a create': post(
      `${configMaps}?dryRun=All`,
      named({
        name: 'managed',
        managedFields: [
          { manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1' },
        ],
      }),
    ),
    'another kind': post(configMaps, { ...configMap('k', { data: {} }), kind: 'Secret' }),
    'another version': post(configMaps, { ...configMap('k'), apiVersion: 'v2' }),
    'another group': post(configMaps, { ...configMap('k'), apiVersion: 'apps/v1' }),
    'a version with too many slashes': post(configMaps, { ...configMap('k'), apiVersion: 'a/b/c' }),
    'an unknown kind': post(configMaps, { ...configMap('k'), kind: 'Nonsense' }),
    'no kind': post(configMaps, { apiVersion: 'v1', metadata: { name: 'no-kind' } }),
    'no apiVersion': post(configMaps, { kind: 'ConfigMap', metadata: { name: 'no-version' } }),
    'neither kind nor apiVersion': post(configMaps, { metadata: { name: 'nothing-said' } }),
    'a list': post(configMaps, { apiVersion: 'v1', kind: 'ConfigMapList', items: [] }),
    'a Status': post(configMaps, { apiVersion: 'v1', kind: 'Status' }),
    'kind in other case': post(configMaps, { ...configMap('cased'), kind: 'configmap' }),
    'wrong labels and annotations': [
      { labels: { 'a b': 'not valid!' }, annotations: { 'x y': 'z' } },
      { labels: { [`${'p'.repeat(254)}/x`]: 'v'.repeat(64) }, annotations: { '/a': '' } },
      { labels: { '': '' }, annotations: { 'A/b/c': '' } },
    ].map((wrong) => post(configMaps, named({ name: 'bad-labels', ...wrong }))),
    'annotations too large': post(
      configMaps,
      named({ name: 'large', annotations: { a: 'x'.repeat(262_145) } }),
    ),
    'wrong owners and finalizers': post(
      configMaps,
      named({
        name: 'bad-owners',
        finalizers: ['no-slash', 'bad name/x', 'example.com/ok'],
        ownerReferences: [{ apiVersion: '', kind: '', name: '', uid: '' }],
      }),
    ),
    'two controllers': post(
      configMaps,
      named({
        name: 'two-controllers',
        ownerReferences: [
          { ...owner, controller: true },
          { ...owner, name: 'p', controller: true },
        ],
      }),
    ),
    'an owner': post(configMaps, named({ name: 'owned', ownerReferences: [owner] })),
    'an Event as owner': post(
      configMaps,
      named({ name: 'owned-by-event', ownerReferences: [{ ...owner, kind: 'Event' }] }),
    ),
    'several problems at once': post(configMaps, {
      ...named({ name: 'Bad_Name', labels: { '!': 'x' }, finalizers: ['x'] }),
      data: { 'bad key!': '1', both: '2' },
      binaryData: { both: 'AA==' },
    }),
    'null fields': post(configMaps, {
      ...named({ name: 'nulls', labels: null, annotations: { a: null } }),
      data: null,
      immutable: null,
    }),
    'a null inside a map': post(configMaps, {
      ...named({ name: 'null-in-map' }),
      data: { a: null },
    }),
    'empty values': post(configMaps, {
      ...named({
        name: 'empties',
        labels: {},
        annotations: {},
        finalizers: [],
        ownerReferences: [],
      }),
      data: {},
      binaryData: {},
      immutable: false,
    }),
    'answers as YAML': post(configMaps, configMap('as-yaml'), { accept: media.yaml }),
    'answers as a table': post(configMaps, configMap('as-table'), { accept: media.table }),
    'answers as metadata': post(configMaps, configMap('as-metadata'), { accept: media.metadata }),
    'answers indented': post(`${configMaps}?pretty=true`, configMap('as-pretty')),
    'POST to an object': post(`${configMaps}/x`, configMap('x')),
    fieldManager: post(`${configMaps}?fieldManager=me`, configMap('managed-by-me')),
    'fieldManager too long': post(
      `${configMaps}?fieldManager=${'m'.repeat(129)}`,
      configMap('managed-by-long'),
    ),
    'fieldManager unprintable': post(`${configMaps}?fieldManager=%00`, configMap('managed-by-nul')),
    'a PUT that creates a lease': put(
      '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/made-by-put',
      { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'made-by-put' } },
    ),
    'a PUT of what is not there': put(`${configMaps}/not-there`, configMap('not-there')),
    'a PUT of what is not there with a version': put(`${configMaps}/not-there-2`, {
      ...configMap('x'),
      metadata: { name: 'not-there-2', resourceVersion: '5' },
    }),
    'a PUT of what is not there with a uid': put(`${configMaps}/not-there-3`, {
      ...configMap('x'),
      metadata: { name: 'not-there-3', uid: '11111111-2222-3333-4444-555555555555' },
    }),
    'a PUT into a namespace that is not there': put(
      '/api/v1/namespaces/nowhere/configmaps/x',
      configMap('x'),
    ),
    'a PUT that creates with an invalid object': put(`${configMaps}/put-invalid`, {
      ...configMap('put-invalid'),
      data: { 'bad key!': '1' },
    }),
  }),
}
