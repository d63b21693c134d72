import { cases, del, get, media, patch, post, put, type Step, type Topic, watch } from '../ask.ts'
import { configMap, configMaps } from '../kinds.ts'
import { versionOf } from '../reading.ts'

const labelled = (name: string, set: string, more: object = {}) =>
  configMap(name, { metadata: { labels: { set } }, ...more })
const of = (set: string, query = ''): string =>
  `${configMaps}?watch=true&labelSelector=set%3D${set}${query}`
const listOf = (set: string): string => `${configMaps}?labelSelector=set%3D${set}`

/** A life: created, changed, deleted. */
const life = (name: string, set: string): Step[] => [
  post(configMaps, labelled(name, set)),
  put(`${configMaps}/${name}`, labelled(name, set, { data: { b: '2' } })),
  del(`${configMaps}/${name}`),
]

const leases = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases'
const refused = (query: string) => get(`${leases}?watch=true&timeoutSeconds=1${query}`)

/** Watches: events, bookmarks, parameters. */
export const watching: Topic = {
  name: 'watching',
  cases: cases({
    'a life from a version': [
      get(listOf('life')),
      (seen) =>
        watch(of('life', `&resourceVersion=${versionOf(seen[0])}`), 3, {
          meanwhile: life('w-life', 'life'),
        }),
    ],
    'a life after the fact': [
      get(listOf('past')),
      ...life('w-past', 'past'),
      (seen) => watch(of('past', `&resourceVersion=${versionOf(seen[0])}`), 3),
    ],
    'from nowhere': [
      post(configMaps, labelled('w-now', 'now')),
      watch(of('now'), 2, { meanwhile: [del(`${configMaps}/w-now`)] }),
    ],
    'from version 0': [
      post(configMaps, labelled('w-zero', 'zero')),
      watch(of('zero', '&resourceVersion=0'), 2, { meanwhile: [del(`${configMaps}/w-zero`)] }),
    ],
    'objects that come to match and go': [
      get(listOf('match')),
      (seen) =>
        watch(of('match', `&resourceVersion=${versionOf(seen[0])}`), 3, {
          meanwhile: [
            post(configMaps, labelled('w-match', 'other')),
            put(`${configMaps}/w-match`, labelled('w-match', 'match')),
            put(`${configMaps}/w-match`, labelled('w-match', 'match', { data: { c: '1' } })),
            put(`${configMaps}/w-match`, labelled('w-match', 'other')),
          ],
        }),
    ],
    'initial events with a bookmark': [
      post(configMaps, labelled('w-init', 'init')),
      watch(
        of(
          'init',
          '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
        ),
        3,
        { meanwhile: [del(`${configMaps}/w-init`)] },
      ),
    ],
    'initial events of version 0': [
      post(configMaps, labelled('w-init0', 'init0')),
      watch(
        of(
          'init0',
          '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0',
        ),
        2,
      ),
    ],
    'initial events without bookmarks': [
      post(configMaps, labelled('w-nobook', 'nobook')),
      watch(
        of('nobook', '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1'),
        9,
      ),
    ],
    'no initial events wanted': [
      post(configMaps, labelled('w-noinit', 'noinit')),
      watch(
        of(
          'noinit',
          '&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
        ),
        1,
        { meanwhile: [del(`${configMaps}/w-noinit`)] },
      ),
    ],
    tables: [
      post(configMaps, labelled('w-table', 'table')),
      {
        ...watch(of('table'), 3, {
          accept: media.table,
          meanwhile: [
            put(`${configMaps}/w-table`, labelled('w-table', 'table', { data: { z: '1' } })),
            del(`${configMaps}/w-table`),
          ],
        }),
      },
    ],
    'tables with initial events': [
      post(configMaps, labelled('w-table-init', 'table-init')),
      watch(
        of(
          'table-init',
          '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
        ),
        2,
        { accept: media.table },
      ),
    ],
    'tables without objects': [
      post(configMaps, labelled('w-table-none', 'table-none')),
      watch(of('table-none', '&includeObject=None'), 1, { accept: media.table }),
    ],
    'tables with whole objects': [
      post(configMaps, labelled('w-table-all', 'table-all')),
      watch(of('table-all', '&includeObject=Object'), 1, { accept: media.table }),
    ],
    metadata: [
      post(configMaps, labelled('w-meta', 'meta')),
      watch(of('meta'), 2, { accept: media.metadata, meanwhile: [del(`${configMaps}/w-meta`)] }),
    ],
    'metadata with initial events': [
      post(configMaps, labelled('w-meta-init', 'meta-init')),
      watch(
        of(
          'meta-init',
          '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true',
        ),
        2,
        { accept: media.metadata },
      ),
    ],
    'a media type with stream=watch': [
      post(configMaps, labelled('w-stream', 'stream')),
      watch(of('stream'), 1, { accept: 'application/json;stream=watch' }),
    ],
    YAML: watch(of('yaml', '&timeoutSeconds=1'), 1, { accept: media.yaml }),
    'the old path of watches': [
      post(configMaps, labelled('w-old', 'old')),
      watch('/api/v1/watch/namespaces/{ns}/configmaps?labelSelector=set%3Dold', 1),
    ],
    'the old path of one object': [
      post(configMaps, labelled('w-old-one', 'old-one')),
      watch('/api/v1/watch/namespaces/{ns}/configmaps/w-old-one', 2, {
        meanwhile: [del(`${configMaps}/w-old-one`)],
      }),
    ],
    'one object by field': [
      post(configMaps, labelled('w-field', 'field')),
      watch(`${configMaps}?watch=true&fieldSelector=metadata.name%3Dw-field`, 2, {
        meanwhile: [post(configMaps, labelled('w-field-2', 'field')), del(`${configMaps}/w-field`)],
      }),
    ],
    'a watch parameter with an object in the path': [
      post(configMaps, labelled('w-get', 'get')),
      get(`${configMaps}/w-get?watch=true&timeoutSeconds=1`),
    ],
    'watch in other spellings': [
      watch(`${leases}?watch=1&timeoutSeconds=1`, 1),
      watch(`${leases}?watch&timeoutSeconds=1`, 1),
      watch(`${leases}?watch=True&timeoutSeconds=1`, 1),
      watch(`${leases}?watch=yes&timeoutSeconds=1`, 1),
      watch(`${leases}?watch=nonsense&timeoutSeconds=1`, 1),
      watch(`${leases}?watch=f&timeoutSeconds=1`, 1),
    ],
    'nothing happens': watch(`${leases}?watch=true&timeoutSeconds=1`, 1),
    'a version of the future': refused('&resourceVersion=100000000'),
    'a version that is too old': watch(
      `${leases}?watch=true&timeoutSeconds=1&resourceVersion=1`,
      1,
    ),
    'a version that is garbage': refused('&resourceVersion=x'),
    'a version below 0': refused('&resourceVersion=-1'),
    'a match rule alone': refused('&resourceVersionMatch=NotOlderThan'),
    'a match rule with a version': refused('&resourceVersionMatch=NotOlderThan&resourceVersion=5'),
    'initial events without a match rule': refused('&sendInitialEvents=true'),
    'initial events with an exact match': refused(
      '&sendInitialEvents=true&resourceVersionMatch=Exact',
    ),
    'initial events with an unknown match': refused(
      '&sendInitialEvents=true&resourceVersionMatch=Nonsense',
    ),
    'initial events with a garbage version': refused(
      '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=x',
    ),
    'initial events of the future': refused(
      '&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=100000000&allowWatchBookmarks=true',
    ),
    'sendInitialEvents that is garbage': refused(
      '&sendInitialEvents=maybe&resourceVersionMatch=NotOlderThan',
    ),
    'allowWatchBookmarks that is garbage': watch(
      `${leases}?watch=true&timeoutSeconds=1&allowWatchBookmarks=maybe`,
      1,
    ),
    'a limit': refused('&limit=1'),
    'a continue': refused('&continue=x'),
    'a timeout that is garbage': get(`${leases}?watch=true&timeoutSeconds=x`),
    'a timeout below 0': get(`${leases}?watch=true&timeoutSeconds=-1&resourceVersion=x`),
    'an Accept that nobody can satisfy': get(`${leases}?watch=true&timeoutSeconds=1`, {
      accept: 'text/plain',
    }),
    'a deletion with finalizers': [
      get(listOf('hold')),
      (seen) =>
        watch(of('hold', `&resourceVersion=${versionOf(seen[0])}`), 3, {
          meanwhile: [
            post(
              configMaps,
              configMap('w-hold', {
                metadata: { labels: { set: 'hold' }, finalizers: ['example.com/x'] },
              }),
            ),
            del(`${configMaps}/w-hold`),
            patch(`${configMaps}/w-hold`, media.mergePatch, { metadata: { finalizers: null } }),
          ],
        }),
    ],
    'a deleted collection': [
      post(configMaps, labelled('w-coll-1', 'coll')),
      post(configMaps, labelled('w-coll-2', 'coll')),
      get(listOf('coll')),
      (seen) =>
        watch(of('coll', `&resourceVersion=${versionOf(seen[2])}`), 2, {
          meanwhile: [del(listOf('coll'))],
        }),
    ],
    'an update that changes nothing': [
      post(configMaps, labelled('w-same', 'same')),
      (seen) =>
        watch(of('same', `&resourceVersion=${versionOf(seen[0])}`), 1, {
          meanwhile: [
            put(`${configMaps}/w-same`, labelled('w-same', 'same')),
            del(`${configMaps}/w-same`),
          ],
        }),
    ],
  }),
}
