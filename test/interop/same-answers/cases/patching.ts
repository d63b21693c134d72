import { type Case, cases, get, media, patch, post, type Topic } from '../ask.ts'
import { collectionOf, configMap, configMaps, objectOf, storedKind } from '../kinds.ts'

type Fields = Readonly<Record<string, unknown>>

/** Makes an object, patches it with each of the patches in turn, and reads it. */
function patched(
  kind: string,
  content: Fields,
  type: string,
  rows: Readonly<Record<string, readonly unknown[]>>,
): Case[] {
  const stored = storedKind(kind)
  const path = collectionOf(stored)
  return Object.entries(rows).map(([name, patches], index) => {
    const own = `${stored.resource}-${type.slice(12, 16)}-${index}`
    return {
      name: `${kind} ${type.slice('application/'.length)}: ${name}`,
      steps: [
        post(path, objectOf(stored, own, content)),
        ...patches.map((body) => patch(`${path}/${own}`, type, body)),
        get(`${path}/${own}`),
      ],
    }
  })
}

const data = { data: { a: '1', b: '2' }, metadata: { labels: { x: 'y' }, annotations: { n: 'm' } } }

const jsonPatches = patched('ConfigMap', data, media.jsonPatch, {
  'adds, replaces, removes': [
    [
      { op: 'add', path: '/data/c', value: '3' },
      { op: 'replace', path: '/data/a', value: 'one' },
      { op: 'remove', path: '/data/b' },
    ],
  ],
  'copies, moves, tests': [
    [
      { op: 'test', path: '/data/a', value: '1' },
      { op: 'copy', from: '/data/a', path: '/data/copied' },
      { op: 'move', from: '/data/b', path: '/data/moved' },
    ],
  ],
  'a test that fails': [[{ op: 'test', path: '/data/a', value: 'other' }]],
  'removes what is not there': [[{ op: 'remove', path: '/data/none' }]],
  'replaces what is not there': [[{ op: 'replace', path: '/data/none', value: 'x' }]],
  'adds below what is not there': [[{ op: 'add', path: '/none/deep/x', value: 'x' }]],
  'copies from what is not there': [[{ op: 'copy', from: '/none', path: '/data/c' }]],
  'moves from what is not there': [[{ op: 'move', from: '/none', path: '/data/c' }]],
  'tests what is not there': [[{ op: 'test', path: '/data/none', value: null }]],
  'an unknown operation': [[{ op: 'twist', path: '/data/a' }]],
  'no operation': [[{ path: '/data/a' }]],
  'no path': [[{ op: 'add', value: 'x' }]],
  'no value': [[{ op: 'add', path: '/data/z' }]],
  'a path without slash': [[{ op: 'add', path: 'data/z', value: 'x' }]],
  'escapes in the path': [[{ op: 'add', path: '/metadata/annotations/a~1b~0c', value: 'x' }]],
  'the whole document': [[{ op: 'replace', path: '', value: { a: 1 } }]],
  'a number where text belongs': [[{ op: 'add', path: '/data/n', value: 5 }]],
  'the name': [[{ op: 'replace', path: '/metadata/name', value: 'other' }]],
  'the namespace': [[{ op: 'replace', path: '/metadata/namespace', value: 'default' }]],
  'the version': [[{ op: 'replace', path: '/metadata/resourceVersion', value: '1' }]],
  'the kind': [[{ op: 'replace', path: '/kind', value: 'Secret' }]],
  'an object instead of a list': [{ op: 'add' }],
  'an empty list': [[]],
  'not JSON': ['{'],
  'an empty body': [''],
  'an unknown field': [[{ op: 'add', path: '/nonsense', value: 'x' }]],
  'a null document': ['null'],
  'invalid labels': [[{ op: 'add', path: '/metadata/labels', value: { 'a b': '!' } }]],
  'removes labels': [[{ op: 'remove', path: '/metadata/labels' }]],
})

const mergePatches = patched('ConfigMap', data, media.mergePatch, {
  'sets and removes': [{ data: { a: null, c: '3' } }],
  'replaces a map by null': [{ data: null }],
  nothing: [{}],
  'a version that is stale': [{ metadata: { resourceVersion: '1' }, data: { a: '9' } }],
  'a uid that differs': [{ metadata: { uid: '11111111-2222-3333-4444-555555555555' } }],
  'the name': [{ metadata: { name: 'other' } }],
  'the name removed': [{ metadata: { name: null } }],
  'the namespace': [{ metadata: { namespace: 'default' } }],
  'the kind': [{ kind: 'Secret' }],
  'the apiVersion': [{ apiVersion: 'v2' }],
  'metadata removed': [{ metadata: null }],
  'a number where text belongs': [{ data: { n: 5 } }],
  'text where a map belongs': [{ data: 'text' }],
  'a list': [[{ data: {} }]],
  text: ['"x"'],
  'a number': ['5'],
  null: ['null'],
  'not JSON': ['{"data":'],
  'an empty body': [''],
  YAML: ['data:\n  a: "5"\n'],
  'an unknown field': [{ nonsense: 1 }],
  'invalid labels': [{ metadata: { labels: { 'a b': '!' } } }],
  'the creation time': [{ metadata: { creationTimestamp: '2001-01-01T00:00:00Z' } }],
  'managedFields emptied': [{ metadata: { managedFields: [{}] } }],
  'managedFields removed': [{ metadata: { managedFields: null } }],
  'twice the same': [{ data: { z: '1' } }, { data: { z: '1' } }],
})

const podContent = {
  metadata: { labels: { app: 'a' }, finalizers: ['example.com/a', 'example.com/b'] },
  spec: {
    containers: [
      { name: 'a', image: 'nginx', ports: [{ containerPort: 80 }] },
      { name: 'b', image: 'busybox' },
    ],
    tolerations: [{ key: 'k', operator: 'Exists' }],
    activeDeadlineSeconds: 100,
  },
}

const strategicOnPods = patched('Pod', podContent, media.strategicPatch, {
  'an image by container name': [{ spec: { containers: [{ name: 'b', image: 'busybox:2' }] } }],
  'an image without a name': [{ spec: { containers: [{ image: 'busybox:2' }] } }],
  'a container more': [{ spec: { containers: [{ name: 'c', image: 'x' }] } }],
  'a container deleted': [{ spec: { containers: [{ $patch: 'delete', name: 'b' }] } }],
  'containers replaced': [
    { spec: { containers: [{ $patch: 'replace' }, { name: 'a', image: 'nginx:2' }] } },
  ],
  'order of elements': [
    {
      spec: {
        $setElementOrder_containers: [{ name: 'b' }, { name: 'a' }],
        containers: [{ name: 'a', image: 'nginx:2' }],
      },
    },
  ],
  'finalizers merged': [{ metadata: { finalizers: ['example.com/c'] } }],
  'finalizers deleted': [
    { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/a'] } },
  ],
  'tolerations more': [
    {
      spec: {
        tolerations: [
          { key: 'k', operator: 'Exists' },
          { key: 'new', operator: 'Exists' },
        ],
      },
    },
  ],
  'labels replaced': [{ metadata: { labels: { $patch: 'replace', only: 'this' } } }],
  'labels deleted': [{ metadata: { labels: { $patch: 'delete' } } }],
  'an unknown directive': [{ metadata: { labels: { $patch: 'twist' } } }],
  'keys retained': [{ metadata: { $retainKeys: ['name', 'namespace', 'labels'] } }],
  'keys retained wrongly': [{ spec: { $retainKeys: ['containers'], activeDeadlineSeconds: 50 } }],
  'the whole object deleted': [{ $patch: 'delete' }],
  'the whole object replaced': [{ $patch: 'replace', metadata: { name: 'x' } }],
  'a value of the wrong type': [{ spec: { activeDeadlineSeconds: 'soon' } }],
  'a map where a list belongs': [{ spec: { containers: { name: 'a' } } }],
  'text where an element belongs': [{ spec: { containers: ['a'] } }],
  'a list at the top': [[{}]],
  'not JSON': ['{'],
  'an empty body': [''],
  null: ['null'],
  'deadline shortened': [{ spec: { activeDeadlineSeconds: 50 } }],
  'a field that must not change': [{ spec: { nodeName: 'n', hostNetwork: true } }],
  'a stale version': [{ metadata: { resourceVersion: '1', labels: { a: 'b' } } }],
})

const serviceContent = {
  spec: {
    selector: { app: 'a' },
    ports: [
      { name: 'http', port: 80 },
      { name: 'dns', port: 53, protocol: 'UDP' },
    ],
  },
}

const strategicOnServices = patched('Service', serviceContent, media.strategicPatch, {
  'a port by number': [{ spec: { ports: [{ port: 80, targetPort: 8080 }] } }],
  'a port more': [{ spec: { ports: [{ name: 'https', port: 443 }] } }],
  'a port deleted': [{ spec: { ports: [{ $patch: 'delete', port: 53 }] } }],
  'ports replaced': [{ spec: { ports: [{ $patch: 'replace' }, { port: 81 }] } }],
  'two ports of one number': [{ spec: { ports: [{ name: 'again', port: 80, protocol: 'UDP' }] } }],
})

const strategicElsewhere = [
  ...patched('ServiceAccount', storedKind('ServiceAccount').full, media.strategicPatch, {
    'secrets by name': [{ secrets: [{ name: 't' }], imagePullSecrets: [{ name: 'q' }] }],
    'secrets deleted': [{ secrets: [{ $patch: 'delete', name: 's' }] }],
  }),
  ...patched('Node', storedKind('Node').full, media.strategicPatch, {
    'taints replaced': [{ spec: { taints: [{ key: 'z', effect: 'NoExecute' }] } }],
    'podCIDRs merged': [{ spec: { podCIDRs: ['fd00::/64'] } }],
  }),
  ...patched('RoleBinding', storedKind('RoleBinding').full, media.strategicPatch, {
    'subjects are replaced': [{ subjects: [{ kind: 'User', name: 'x' }] }],
  }),
  ...patched('Role', storedKind('Role').full, media.strategicPatch, {
    'rules are replaced': [{ rules: [{ apiGroups: ['apps'], resources: ['*'], verbs: ['*'] }] }],
  }),
  ...patched('Endpoints', storedKind('Endpoints').full, media.strategicPatch, {
    'subsets are replaced': [{ subsets: [{ addresses: [{ ip: '192.0.2.9' }] }] }],
  }),
  ...patched('EndpointSlice', storedKind('EndpointSlice').full, media.strategicPatch, {
    'endpoints are replaced': [{ endpoints: [{ addresses: ['192.0.2.9'] }] }],
  }),
]

/** The three kinds of patches, and what is wrong with them. */
export const patching: Topic = {
  name: 'patching',
  cases: [
    ...jsonPatches,
    ...mergePatches,
    ...strategicOnPods,
    ...strategicOnServices,
    ...strategicElsewhere,
    ...cases({
      'what is not there': [
        patch(`${configMaps}/none`, media.mergePatch, { data: {} }),
        patch(`${configMaps}/none`, media.jsonPatch, []),
        patch(`${configMaps}/none`, media.strategicPatch, {}),
      ],
      'a collection': patch(configMaps, media.mergePatch, {}),
      'a namespace that is not there': patch(
        '/api/v1/namespaces/nowhere/configmaps/x',
        media.mergePatch,
        {},
      ),
      'server-side apply': patch(
        `${configMaps}/applied?fieldManager=me`,
        media.applyPatch,
        configMap('applied'),
      ),
      'an unsupported type': [
        post(configMaps, configMap('types')),
        patch(`${configMaps}/types`, media.json, {}),
        patch(`${configMaps}/types`, 'text/plain', {}),
        patch(`${configMaps}/types`, '', {}),
        patch(`${configMaps}/types`, `${media.mergePatch}; charset=utf-8`, { data: { a: 'c' } }),
      ],
      'field validation': [
        post(configMaps, configMap('validated')),
        patch(`${configMaps}/validated?fieldValidation=Strict`, media.mergePatch, { x: 1 }),
        patch(`${configMaps}/validated?fieldValidation=Warn`, media.mergePatch, { x: 1 }),
        patch(`${configMaps}/validated?fieldValidation=Ignore`, media.mergePatch, { x: 1 }),
        patch(`${configMaps}/validated?fieldValidation=Nonsense`, media.mergePatch, { x: 1 }),
        patch(
          `${configMaps}/validated?fieldValidation=Strict`,
          media.mergePatch,
          '{"data":{"a":"1","a":"2"}}',
        ),
        patch(`${configMaps}/validated?fieldValidation=Strict`, media.jsonPatch, [
          { op: 'add', path: '/x', value: 1, extra: true },
        ]),
        patch(`${configMaps}/validated?fieldValidation=Strict`, media.strategicPatch, { x: 1 }),
        patch(`${configMaps}/validated?fieldValidation=Warn`, media.strategicPatch, {
          x: { y: 1 },
        }),
      ],
      'dry runs': [
        post(configMaps, configMap('dry')),
        patch(`${configMaps}/dry?dryRun=All`, media.mergePatch, { data: { z: '1' } }),
        patch(`${configMaps}/dry?dryRun=No`, media.mergePatch, { data: { z: '1' } }),
        patch(`${configMaps}/dry?force=true`, media.mergePatch, { data: { z: '1' } }),
        get(`${configMaps}/dry`),
      ],
      'answers in other forms': [
        post(configMaps, configMap('forms')),
        patch(
          `${configMaps}/forms`,
          media.mergePatch,
          { data: { z: '1' } },
          { accept: media.table },
        ),
        patch(
          `${configMaps}/forms`,
          media.mergePatch,
          { data: { z: '2' } },
          { accept: media.metadata },
        ),
        patch(
          `${configMaps}/forms`,
          media.mergePatch,
          { data: { z: '3' } },
          { accept: media.yaml },
        ),
      ],
    }),
  ],
}
