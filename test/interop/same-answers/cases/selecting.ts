import { type Case, cases, get, post, type Step, type Topic } from '../ask.ts'
import { collectionOf, objectOf, storedKind, storedKinds } from '../kinds.ts'

/** A kind of which nobody else makes objects in a new namespace. */
const secrets = collectionOf(storedKind('Secret'))
const labels = (name: string, values: Record<string, string>) =>
  objectOf(storedKind('Secret'), name, { metadata: { labels: values } })

/** What every selection has to choose from. */
const stock: Step[] = [
  post(secrets, labels('s1', { app: 'a', tier: 'front', n: '1' })),
  post(secrets, labels('s2', { app: 'a', tier: 'back', n: '10' })),
  post(secrets, labels('s3', { app: 'b', 'example.com/x': 'y', n: 'x' })),
  post(secrets, labels('s4', { app: '' })),
]

const byLabel = [
  'app',
  '!app',
  'app=a',
  'app==a',
  'app!=a,app',
  'app in (a,b)',
  'app notin (a),app',
  'app in ()',
  'app in (),tier',
  'app in (a),tier notin (back)',
  'example.com/x=y',
  'app=',
  'app=a,tier=front',
  ' app = a , tier = front ',
  'n>5',
  'n<5',
  'n>x',
  'n>=5',
  'app=a,',
  ',app=a',
  'app=a,,tier',
  '=a',
  'app=a b',
  'app in a',
  'app in (a',
  'app in',
  'app in (a,b',
  '!',
  '!!app',
  '!app=a',
  'app=!a',
  'app===a',
  'app=>a',
  'app==!=a',
  'A B=c',
  'not valid!=x',
  '/x=y',
  'a/b/c=d',
  '-x=y',
  `${'k'.repeat(64)}=x`,
  `app=${'v'.repeat(64)}`,
  'app=-x',
  'app in (a,-b)',
  'UPPER.example/x=y',
  'app=ä',
  'app\u0000=a',
  'in=a',
  'notin notin (notin)',
  'app in (in)',
  '(a)',
  'app,app',
  '*',
  'app=*',
  'app=a;tier=b',
  '"app"=a',
]

const byField = [
  'metadata.name=s1',
  'metadata.name==s1',
  'metadata.name!=s1',
  'metadata.namespace={ns}',
  'metadata.namespace!={ns}',
  'metadata.namespace=default',
  'metadata.name=s1,metadata.namespace={ns}',
  'metadata.name=s1,metadata.name=s2',
  'metadata.name=',
  'metadata.name=not there',
  'metadata.name=a\\,b',
  'metadata.name=a\\=b',
  'metadata.name=a\\b',
  'metadata.name=a\\',
  'metadata.uid=x',
  'data.a=1',
  'type=Opaque',
  'name=s1',
  'metadata.name',
  '=s1',
  'metadata.name=s1,',
  'metadata.name=s1,,metadata.name=s1',
  'metadata.name in (s1)',
  'metadata.name=a/b',
  'metadata.name=.',
  'nonsense',
  '!metadata.name',
  'metadata.name===x',
]

const listed = (parameter: string, selector: string): Case => ({
  name: `${parameter} ${selector.slice(0, 50)}`,
  steps: [
    get(`${secrets}?${parameter}=${encodeURIComponent(selector).replaceAll('%7Bns%7D', '{ns}')}`),
  ],
})

/** Fields of every kind that some kind can be selected by. */
const fieldNames = [
  'metadata.name',
  'status.phase',
  'spec.nodeName',
  'spec.unschedulable',
  'spec.type',
  'spec.clusterIP',
  'spec.signerName',
  'type',
  'involvedObject.kind',
  'reason',
]
const ofEveryKind: Case[] = storedKinds.map((kind) => ({
  name: `fields of ${kind.kind}`,
  steps: fieldNames.map((field) => get(`${collectionOf(kind)}?fieldSelector=${field}%3Dnone`)),
}))

/** Both sorts of selectors on lists. */
export const selecting: Topic = {
  name: 'selecting',
  cases: [
    ...byLabel.map((selector) => listed('labelSelector', selector)),
    ...byField.map((selector) => listed('fieldSelector', selector)),
    ...ofEveryKind,
    ...cases({
      'both at once': get(`${secrets}?labelSelector=app%3Da&fieldSelector=metadata.name%3Ds1`),
      'both wrong': get(`${secrets}?labelSelector=%3D&fieldSelector=x%3Dy`),
      'a selector twice': get(`${secrets}?labelSelector=app%3Da&labelSelector=app%3Db`),
      'with an object in the path': get(`${secrets}/s1?labelSelector=app%3Db`),
      'a wrong one with an object in the path': get(`${secrets}/s1?labelSelector=%3D%3D`),
      'across namespaces': get(
        '/api/v1/secrets?labelSelector=app&fieldSelector=metadata.namespace%3D{ns}',
      ),
      'in a watch': get(`${secrets}?watch=true&timeoutSeconds=1&labelSelector=%3D%3D`),
      'a field in a watch': get(`${secrets}?watch=true&timeoutSeconds=1&fieldSelector=x%3Dy`),
    }),
  ],
  before: stock,
}
