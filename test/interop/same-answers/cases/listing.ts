import { cases, get, media, post, put, type Step, type Topic } from '../ask.ts'
import { configMap, configMaps } from '../kinds.ts'
import { continueOf, versionOf } from '../reading.ts'

const leases = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases'
const lease = (name: string, more: object = {}) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, labels: { n: name }, ...more },
})
const stock: Step[] = ['a', 'b', 'c', 'd', 'e'].map((name) => post(leases, lease(name)))

const token = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** One request per row of the table of versions and match rules. */
const versions = ['', '0', '1', '-1', 'x', '1.5', '99999999999999999999']
const matches = ['', 'Exact', 'NotOlderThan', 'Nonsense']
const combinations: Step[] = versions.flatMap((version) =>
  matches.map((match) =>
    get(`${leases}?resourceVersion=${version}&resourceVersionMatch=${match}&limit=2`),
  ),
)

/** Lists: pages, versions, parameters. */
export const listing: Topic = {
  name: 'listing',
  before: stock,
  cases: cases({
    all: get(leases),
    'an empty namespace': get('/apis/coordination.k8s.io/v1/namespaces/nowhere/leases'),
    'an invalid namespace': get('/apis/coordination.k8s.io/v1/namespaces/Not_Valid/leases'),
    pages: [
      get(`${leases}?limit=2`),
      (seen) => get(`${leases}?limit=2&continue=${continueOf(seen[0])}`),
      (seen) => get(`${leases}?limit=2&continue=${continueOf(seen[1])}`),
    ],
    'the rest after a page': [
      get(`${leases}?limit=2`),
      (seen) => get(`${leases}?continue=${continueOf(seen[0])}`),
    ],
    'exactly all': get(`${leases}?limit=5`),
    'more than all': get(`${leases}?limit=6`),
    'limit 0': get(`${leases}?limit=0`),
    'limit below 0': get(`${leases}?limit=-1`),
    'limit that is no number': get(`${leases}?limit=x`),
    'limit with a fraction': get(`${leases}?limit=1.5`),
    'limit empty': get(`${leases}?limit=`),
    'limit too large': get(`${leases}?limit=99999999999999999999`),
    'limit twice': get(`${leases}?limit=1&limit=2`),
    'pages with a label selector': [
      get(`${leases}?limit=1&labelSelector=n+in+(a,e)`),
      (seen) => get(`${leases}?limit=1&labelSelector=n+in+(a,e)&continue=${continueOf(seen[0])}`),
    ],
    'pages with a field selector': get(`${leases}?limit=1&fieldSelector=metadata.name!%3Da`),
    'pages as a table': [
      get(`${leases}?limit=2`, { accept: media.table }),
      (seen) => get(`${leases}?limit=2&continue=${continueOf(seen[0])}`, { accept: media.table }),
    ],
    'pages as metadata': get(`${leases}?limit=2`, { accept: media.metadataList }),
    'a page stays at its version': [
      post(configMaps, configMap('p1', { metadata: { labels: { set: 'p' } } })),
      post(configMaps, configMap('p2', { metadata: { labels: { set: 'p' } } })),
      post(configMaps, configMap('p3', { metadata: { labels: { set: 'p' } } })),
      get(`${configMaps}?labelSelector=set%3Dp&limit=1`),
      put(`${configMaps}/p2`, configMap('p2', { metadata: { labels: { set: 'p', new: 'yes' } } })),
      (seen) => get(`${configMaps}?labelSelector=set%3Dp&continue=${continueOf(seen[3])}`),
    ],
    'continue with a version': [
      get(`${leases}?limit=2`),
      (seen) => get(`${leases}?continue=${continueOf(seen[0])}&resourceVersion=0`),
      (seen) => get(`${leases}?continue=${continueOf(seen[0])}&resourceVersion=5`),
      (seen) =>
        get(
          `${leases}?continue=${continueOf(seen[0])}&resourceVersion=5&resourceVersionMatch=Exact`,
        ),
      (seen) => get(`${leases}?continue=${continueOf(seen[0])}&resourceVersionMatch=Exact`),
    ],
    'continue of another kind': [
      get(`${leases}?limit=2`),
      (seen) => get(`/api/v1/namespaces/{ns}/secrets?continue=${continueOf(seen[0])}`),
    ],
    'continue that is garbage': get(`${leases}?continue=garbage`),
    'continue that is not base64': get(`${leases}?continue=***`),
    'continue that is not JSON': get(
      `${leases}?continue=${Buffer.from('{').toString('base64url')}`,
    ),
    'continue of another version': get(
      `${leases}?continue=${token({ v: 'v9', rv: 1, start: 'a\u0000' })}`,
    ),
    'continue without a start': get(`${leases}?continue=${token({ v: 'meta.k8s.io/v1', rv: 5 })}`),
    'continue without a version': get(
      `${leases}?continue=${token({ v: 'meta.k8s.io/v1', start: 'a\u0000' })}`,
    ),
    'continue that climbs': get(
      `${leases}?continue=${token({ v: 'meta.k8s.io/v1', rv: 5, start: '../../x\u0000' })}`,
    ),
    'versions and match rules': combinations,
    'versions without a limit': versions.flatMap((version) =>
      matches.map((match) =>
        get(`${leases}?resourceVersion=${version}&resourceVersionMatch=${match}`),
      ),
    ),
    'a version exactly': [
      post(configMaps, configMap('exact', { metadata: { labels: { set: 'exact' } } })),
      put(
        `${configMaps}/exact`,
        configMap('exact', { metadata: { labels: { set: 'exact' } }, data: { b: '2' } }),
      ),
      (seen) =>
        get(
          `${configMaps}?labelSelector=set%3Dexact&resourceVersion=${versionOf(seen[0])}&resourceVersionMatch=Exact`,
        ),
      (seen) =>
        get(
          `${configMaps}?labelSelector=set%3Dexact&resourceVersion=${versionOf(seen[0])}&resourceVersionMatch=NotOlderThan`,
        ),
      (seen) =>
        get(
          `${configMaps}?labelSelector=set%3Dexact&resourceVersion=${versionOf(seen[0])}&limit=5`,
        ),
      (seen) =>
        get(`${configMaps}?labelSelector=set%3Dexact&resourceVersion=${versionOf(seen[0])}`),
    ],
    'a version of the future': get(`${leases}?resourceVersion=100000000`),
    'a version of the future, exactly': get(
      `${leases}?resourceVersion=100000000&resourceVersionMatch=Exact`,
    ),
    'sendInitialEvents in a list': get(`${leases}?sendInitialEvents=true`),
    'allowWatchBookmarks in a list': get(`${leases}?allowWatchBookmarks=true`),
    'timeoutSeconds in a list': get(`${leases}?timeoutSeconds=x`),
    'an unknown parameter': get(`${leases}?nonsense=1`),
    'watch=false': get(`${leases}?watch=false`),
    'watch=0': get(`${leases}?watch=0`),
    pretty: get(`${leases}?pretty=true&limit=1`),
    'pretty for a browser': get(`${leases}?limit=1`, { headers: { 'user-agent': 'Mozilla/5.0' } }),
    'pretty for curl': get(`${leases}?limit=1`, { headers: { 'user-agent': 'curl/8.0' } }),
    'pretty wanted not': get(`${leases}?limit=1&pretty=false`, {
      headers: { 'user-agent': 'curl/8.0' },
    }),
    'as YAML': get(`${leases}?limit=1`, { accept: media.yaml }),
    'gzip asked for and too small': get(`${leases}?limit=1`, {
      headers: { 'accept-encoding': 'gzip' },
    }),
    'gzip asked for and large': [
      ...['g1', 'g2'].map((name) =>
        post(
          configMaps,
          configMap(name, {
            metadata: { labels: { set: 'gzip' } },
            data: { a: 'x'.repeat(100_000) },
          }),
        ),
      ),
      get(`${configMaps}?labelSelector=set%3Dgzip`, { headers: { 'accept-encoding': 'gzip' } }),
      get(`${configMaps}?labelSelector=set%3Dgzip`, { headers: { 'accept-encoding': 'deflate' } }),
    ],
    'an object at a version': [
      get(`${leases}/a?resourceVersion=0`),
      get(`${leases}/a?resourceVersion=1`),
      get(`${leases}/a?resourceVersion=x`),
      get(`${leases}/a?resourceVersion=-1`),
      get(`${leases}/a?resourceVersion=100000000`),
      get(`${leases}/none?resourceVersion=0`),
    ],
  }),
}
