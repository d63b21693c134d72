import { type Case, del, get, media, patch, post, put, type Topic } from '../ask.ts'
import { collectionOf, objectOf, type StoredKind, storedKinds } from '../kinds.ts'
import { bodyOf, metadataOf } from '../reading.ts'

const nameFor = ({ resource }: StoredKind, what: string): string => `${resource}-${what}`

function leastOf(kind: StoredKind): Case {
  const name = nameFor(kind, 'least')
  const path = collectionOf(kind)
  return {
    name: `${kind.kind}: the least object`,
    steps: [
      post(path, objectOf(kind, name, kind.least)),
      get(`${path}/${name}`),
      get(`${path}/${name}`, { accept: media.metadata }),
      post(path, objectOf(kind, name, kind.least)),
      del(`${path}/${name}?dryRun=All`),
      del(`${path}/${name}`),
    ],
  }
}

function fullOf(kind: StoredKind): Case {
  const name = nameFor(kind, 'full')
  const path = collectionOf(kind)
  const own = `${path}/${name}`
  return {
    name: `${kind.kind}: a full object changes`,
    steps: [
      post(`${path}?dryRun=All`, objectOf(kind, name, kind.full)),
      post(path, objectOf(kind, name, kind.full)),
      get(own),
      (seen) => put(own, bodyOf(seen[1])),
      patch(own, media.mergePatch, kind.change),
      (seen) => put(own, bodyOf(seen[1])),
      (seen) => put(`${own}?dryRun=All`, bodyOf(seen[4])),
      patch(own, media.strategicPatch, { metadata: { labels: { patched: 'strategic' } } }),
      patch(own, media.jsonPatch, [{ op: 'add', path: '/metadata/labels/second', value: 'json' }]),
      patch(`${own}?dryRun=All`, media.mergePatch, { metadata: { labels: null } }),
      patch(own, media.mergePatch, { metadata: { labels: { patched: 'strategic' } } }),
      get(own),
    ],
  }
}

function deletionsOf(kind: StoredKind): Case {
  const name = nameFor(kind, 'gone')
  const path = collectionOf(kind)
  const own = `${path}/${name}`
  const finalizers = ['example.com/hold']
  return {
    name: `${kind.kind}: deletion with conditions and finalizers`,
    steps: [
      post(path, {
        ...objectOf(kind, name, kind.least),
        metadata: { name, finalizers, labels: { hold: 'yes' } },
      }),
      del(own, { preconditions: { uid: '11111111-2222-3333-4444-555555555555' } }),
      del(own, { preconditions: { resourceVersion: '1' } }),
      (seen) => del(own, { dryRun: ['All'], preconditions: { uid: metadataOf(seen[0])['uid'] } }),
      (seen) =>
        del(own, {
          kind: 'DeleteOptions',
          apiVersion: 'v1',
          gracePeriodSeconds: 0,
          preconditions: {
            uid: metadataOf(seen[0])['uid'],
            resourceVersion: metadataOf(seen[0])['resourceVersion'],
          },
        }),
      // The controller of a real cluster would finish off a namespace at any time from here on.
      ...(kind.kind === 'Namespace'
        ? []
        : [
            get(own),
            del(own, { gracePeriodSeconds: 0 }),
            patch(own, media.mergePatch, { metadata: { finalizers: null } }),
          ]),
    ],
  }
}

/** The path of every kind from its creation to its deletion. */
export const lifeOfKinds: Topic = {
  name: 'the life of every kind',
  cases: storedKinds.flatMap((kind) => [leastOf(kind), fullOf(kind), deletionsOf(kind)]),
}
