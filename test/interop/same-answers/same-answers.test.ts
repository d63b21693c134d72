import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPeer, findProgram, pathOrReason } from '../../support/peers.ts'
import type { Topic } from './ask.ts'
import { brokenBodies } from './cases/bodies.ts'
import { changing } from './cases/changing.ts'
import { creating } from './cases/creating.ts'
import { defaultRoles } from './cases/default-roles.ts'
import { deleting } from './cases/deleting.ts'
import { documents } from './cases/documents.ts'
import { expired } from './cases/expired.ts'
import { fieldValidation } from './cases/field-validation.ts'
import { forms } from './cases/forms.ts'
import { lifeOfKinds } from './cases/life-of-kinds.ts'
import { listing } from './cases/listing.ts'
import { patching } from './cases/patching.ts'
import { paths } from './cases/paths.ts'
import { protobuf } from './cases/protobuf.ts'
import { recorded } from './cases/recorded.ts'
import { reviews } from './cases/reviews.ts'
import { rights } from './cases/rights.ts'
import { selecting } from './cases/selecting.ts'
import { subresources } from './cases/subresources.ts'
import { tokens } from './cases/tokens.ts'
import { watching } from './cases/watching.ts'
import { type Difference, describeDifference } from './compare.ts'
import { knownDifferences, reasonFor } from './known-differences.ts'
import { runTopic, type TopicOutcome } from './run-topic.ts'
import { type RunningPair, startServers } from './start-servers.ts'

const topics: readonly (readonly [claim: string, topic: Topic])[] = [
  ['the life of every kind [GND-R92, GND-R45, GND-R53, GND-R58]', lifeOfKinds],
  ['creating [GND-R92, GND-R53, GND-R58, GND-R62]', creating],
  ['changing [GND-R92, GND-R53, GND-R62]', changing],
  ['patching [GND-R92, GND-R57]', patching],
  ['deleting [GND-R92, GND-R53, GND-R58]', deleting],
  ['bodies that are good and broken [GND-R92, GND-R63]', brokenBodies],
  ['field validation [GND-R92, GND-R58]', fieldValidation],
  ['protobuf [GND-R92, GND-R60, GND-R63]', protobuf],
  ['recorded objects [GND-R92, GND-R45, GND-R62]', recorded],
  ['selecting [GND-R92, GND-R54]', selecting],
  ['listing [GND-R92, GND-R53, GND-R55]', listing],
  ['watching [GND-R92, GND-R56]', watching],
  ['forms of answers [GND-R92, GND-R59]', forms],
  ['subresources [GND-R92, GND-R45]', subresources],
  ['paths and methods [GND-R92, GND-R53]', paths],
  ['reviews [GND-R92, GND-R46]', reviews],
  ['tokens of service accounts [ISS-R34, ISS-K2, ISS-K4, ISS-K9, ISS-K12]', tokens],
  ['rights [GND-R92, GND-R70, GND-R76, GND-R79]', rights],
  ['default roles and bindings [GND-R92, GND-R79]', defaultRoles],
  ['documents [GND-R92, GND-R42, GND-R43, GND-R44, GND-R65]', documents],
]

const here = [findPeer('kube-apiserver-1.36'), findPeer('etcd-3.6'), findProgram('openssl')].every(
  (peer) => pathOrReason(peer) !== undefined,
)

describe.skipIf(!here)('a real kube-apiserver and ours', () => {
  const seen: Difference[] = []
  let requests = 0
  let servers: RunningPair | undefined

  beforeAll(async () => {
    servers = await startServers()
  })
  afterAll(async () => {
    await servers?.stop()
    console.log(`${requests} requests to both, ${seen.length} differences seen`)
  })

  /** The differences for which no reason is known, in words. */
  function reported(outcome: TopicOutcome): string {
    requests += outcome.requests
    seen.push(...outcome.differences)
    const unexpected = outcome.differences.filter((difference) => !reasonFor(difference))
    return unexpected.map(describeDifference).join('\n')
  }

  test.each(topics)('give the same answers about %s', async (_claim, topic) => {
    expect(reported(await runTopic(topic, servers!))).toBe('')
  })

  test('give the same answers about expired versions [GND-R92, GND-R23, GND-R55, GND-R56]', async () => {
    const outcome = await runTopic(expired, servers!, () => servers!.expireVersions())
    expect(reported(outcome)).toBe('')
  })

  test('show every listed difference still [GND-R92]', () => {
    const found = new Set(seen.map(reasonFor))
    const gone = knownDifferences.filter((known) => !found.has(known))
    expect(gone.map(({ what }) => what)).toEqual([])
    expect(requests).toBeGreaterThan(2_500) // as docs/differences.md says
  })
})
