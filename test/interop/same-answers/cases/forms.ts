import { type Case, cases, get, media, post, type Topic } from '../ask.ts'
import { collectionOf, configMap, configMaps, objectOf, storedKinds } from '../kinds.ts'

const one = `${configMaps}/form`
const accepts = [
  '*/*',
  'application/*',
  'text/*',
  'text/plain',
  'text/html,application/xhtml+xml,*/*;q=0.8',
  'nonsense',
  '',
  'application/yaml',
  'application/yaml,application/json',
  'application/json;q=0.1,application/yaml',
  'application/json;q=0',
  'application/vnd.kubernetes.protobuf',
  'application/vnd.kubernetes.protobuf,application/json',
  'application/cbor',
  'application/cbor,application/json',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=Table;v=v1beta1;g=meta.k8s.io',
  'application/json;as=Table;v=v9;g=meta.k8s.io',
  'application/json;as=Table;v=v9;g=meta.k8s.io,application/json',
  'application/json;as=Table',
  'application/json;as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1beta1,application/json',
  'application/yaml;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/json;as=Nonsense;v=v1;g=meta.k8s.io',
  'application/json;as=ConfigMap;v=v1;g=',
  'application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io,application/json',
  'application/json;stream=watch',
  'application/json;pretty=1',
  'application/json;charset=utf-8',
]

const negotiated: Case[] = accepts.map((accept) => ({
  name: `Accept ${accept || 'nothing'}`,
  steps: [get(one, { accept }), get(`${configMaps}?labelSelector=form`, { accept })],
}))

interface TableShape {
  readonly columnDefinitions?: readonly { readonly name: string }[] | null
  readonly rows?: readonly { readonly cells: readonly unknown[] }[] | null
}

const timed = new Set(['Age', 'Last Seen', 'First Seen'])

/** Ages differ by when one looks. */
function withoutAges(json: unknown): unknown {
  const { columnDefinitions, rows } = json as TableShape
  if (!columnDefinitions || !rows) return json
  const isTimed = (index: number) => timed.has(columnDefinitions[index]?.name ?? '')
  return {
    ...(json as TableShape),
    rows: rows.map((row) => ({
      ...row,
      cells: row.cells.map((cell, index) => (isTimed(index) ? typeof cell : cell)),
    })),
  }
}

const tables: Case[] = storedKinds.map((kind) => {
  const path = collectionOf(kind)
  const name = `${kind.resource}-in-table`
  return {
    name: `${kind.kind} in a table`,
    steps: [
      post(path, objectOf(kind, name, kind.full)),
      get(`${path}/${name}`, { accept: media.table }),
      get(`${path}?fieldSelector=metadata.name%3D${name}`, { accept: media.table }),
      get(`${path}?fieldSelector=metadata.name%3Dnone`, { accept: media.table }),
      get(`${path}/${name}?includeObject=Object`, { accept: media.table }),
      get(`${path}/${name}?includeObject=None`, { accept: media.table }),
    ],
    view: withoutAges,
  }
})

/** The forms in which answers come. */
export const forms: Topic = {
  name: 'forms of answers',
  before: [post(configMaps, configMap('form', { metadata: { labels: { form: 'yes' } } }))],
  cases: [
    ...negotiated,
    ...tables,
    ...cases({
      'includeObject that is unknown': get(`${one}?includeObject=Nonsense`, {
        accept: media.table,
      }),
      'includeObject without a table': get(`${one}?includeObject=Nonsense`),
      'metadata of an object that is not there': get(`${configMaps}/none`, {
        accept: media.metadata,
      }),
      'a table of an object that is not there': get(`${configMaps}/none`, { accept: media.table }),
      'YAML of an object that is not there': get(`${configMaps}/none`, { accept: media.yaml }),
      pretty: get(`${one}?pretty=true`),
      'pretty=1': get(`${one}?pretty=1`),
      'pretty=nonsense': get(`${one}?pretty=nonsense`),
      'pretty error': get(`${configMaps}/none?pretty=true`),
      'errors for curl': get(`${configMaps}/none`, { headers: { 'user-agent': 'curl/8' } }),
    }),
  ],
}
