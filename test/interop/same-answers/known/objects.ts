import { isOutcome, type KnownDifference, shown, text } from './known-difference.ts'

/** What objects are like and what becomes of them. */
export const objects: readonly KnownDifference[] = [
  {
    what: 'Server-side apply',
    theirs: 'supported',
    ours: '415, with the advice to run `kubectl apply` without `--server-side`',
    why: 'client-side apply does the same for the kinds that are served',
    matches: (difference) => difference.case === 'server-side apply' && isOutcome(difference),
  },
  {
    what: 'A new Node',
    theirs: 'gets the taint `node.kubernetes.io/not-ready`',
    ours: 'gets no taint',
    why: 'nobody would take it away: there is no node controller and no scheduler that heeds it',
    matches: ({ at, theirs }) =>
      at.includes('spec.taints') && shown(theirs).includes('node.kubernetes.io/not-ready'),
  },
  {
    what: 'Deleting a Pod that has a node',
    theirs: 'waits for its kubelet, up to the grace period',
    ours: 'deletes it at once',
    why: 'no kubelet would confirm the end',
    matches: ({ topic, case: name }) => topic === 'deleting' && name.startsWith('a Pod on a node'),
  },
  {
    what: 'Node ports of Services',
    theirs: 'allocated, and refused when they are taken',
    ours: 'kept as sent, and only checked for their range, in dry runs too',
    why: 'no kube-proxy would open them',
    matches: ({ case: name }) => /Service with a node port|node port out of range/.test(name),
  },
  {
    what: 'A dry run that asks for a cluster IP which is taken',
    theirs: 'succeeds',
    ours: '422, as without `dryRun`',
    why: 'a dry run should say what would happen',
    matches: ({ case: name }) => name === 'service: taken address',
  },
  {
    what: 'The words about a cluster IP outside the range',
    theirs: 'name the range only in a dry run',
    ours: 'always name the range',
    why: 'one needs to know it to do better',
    matches: ({ theirs }) => shown(theirs).includes('does not match the current range'),
  },
  {
    what: 'A DELETE with a body and `dryRun=All` in the query',
    theirs: 'ignores the query and deletes',
    ours: 'deletes nothing',
    why: 'whoever asks for a dry run must get one',
    matches: ({ case: name }) => name === 'dry run in the query beside a body',
  },
  {
    what: 'A list with `resourceVersion=0` and a `limit`',
    theirs: 'returns everything from the watch cache',
    ours: 'returns a page',
    why: 'the limit is what was asked for, and costs nothing here',
    matches: ({ request, at }) =>
      request.includes('resourceVersion=0') && request.includes('limit=2') && at.startsWith('body'),
  },
  {
    what: 'A watch from a `resourceVersion` of the future',
    theirs: 'stays silent until that version has come',
    ours: '504 `ResourceVersionTooLarge`',
    why: 'after a restore from a backup a client has to learn that it must list again',
    matches: ({ topic, case: name }) => topic === 'watching' && name.endsWith('of the future'),
  },
  {
    what: 'A Table of no Roles or ClusterRoles',
    theirs: '`rows: null`',
    ours: '`rows: []`',
    why: 'a list is a list',
    matches: ({ at, ours, theirs }) =>
      at === 'body.rows' && shown(ours) === '[]' && theirs === null,
  },
  {
    what: 'Problems of an Event',
    theirs: 'those of its metadata come only when there are no others',
    ours: 'all at once',
    why: 'as for every other kind',
    matches: ({ topic, case: name }) => topic === 'protobuf' && name === 'event-empty',
  },
  {
    what: '`details.causes`',
    theirs: 'some problems are listed two to four times',
    ours: 'each once',
    why: 'nothing is gained by repeating them',
    matches: ({ at, theirs }) => /details\.causes\.\d+$/.test(at) && theirs === '<repeats>',
  },
  {
    what: 'TokenReview of a bad token with a `status` in the request',
    theirs: 'the answer repeats the user that the request claims',
    ours: 'the status is that of the server',
    why: 'a claim must never look like a finding',
    matches: ({ case: name, at, ours }) =>
      name === 'tokenreview' && at.startsWith('body.status.') && ours === undefined,
  },
  {
    what: 'A refused update of a Pod',
    theirs: 'the message ends with a diff of the two specs',
    ours: 'no diff',
    why: 'a spec may hold what the sender of a patch is not allowed to read',
    matches: ({ ours, theirs }) =>
      text(ours).includes('pod updates may not change fields other than') &&
      text(theirs).startsWith(text(ours)),
  },
]
