import { cases, get, media, post, type Topic, watch } from '../ask.ts'
import { continueOf, versionOf } from '../reading.ts'

const leases = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases'
const lease = (name: string) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name },
})

/** Versions and pages from before a compaction. The first list of `before` is a page. */
export const expired: Topic = {
  name: 'expired versions',
  before: [
    get(`${leases}?limit=1`),
    ...['a', 'b', 'c'].map((name) => post(leases, lease(name))),
    get(`${leases}?limit=1`),
    post(leases, lease('newer')),
  ],
  cases: cases({
    'a watch': [
      (_seen, before) => watch(`${leases}?watch=true&resourceVersion=${versionOf(before[0])}`, 9),
    ],
    'a watch in a table': [
      (_seen, before) =>
        watch(`${leases}?watch=true&resourceVersion=${versionOf(before[0])}`, 9, {
          accept: media.table,
        }),
    ],
    'a watch from version 1': watch(`${leases}?watch=true&resourceVersion=1`, 9),
    'a list': [
      (_seen, before) =>
        get(`${leases}?resourceVersion=${versionOf(before[0])}&resourceVersionMatch=Exact`),
      (_seen, before) => get(`${leases}?resourceVersion=${versionOf(before[0])}&limit=1`),
      (_seen, before) => get(`${leases}?resourceVersion=${versionOf(before[0])}`),
      (_seen, before) =>
        get(`${leases}?resourceVersion=${versionOf(before[0])}&resourceVersionMatch=NotOlderThan`),
    ],
    'a page and the way to go on': [
      (_seen, before) => get(`${leases}?limit=1&continue=${continueOf(before[4])}`),
      (seen) => get(`${leases}?limit=1&continue=${continueOf(seen[0])}`),
      (seen) => get(`${leases}?limit=1&continue=${continueOf(seen[1])}`),
    ],
    'an object': [(_seen, before) => get(`${leases}/a?resourceVersion=${versionOf(before[0])}`)],
  }),
}
