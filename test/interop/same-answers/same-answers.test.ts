import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPeer, findProgram, pathOrReason } from '../../support/peers.ts'
import { type Difference, describeDifference } from './compare.ts'
import { knownDifferences } from './known-differences.ts'
import { runTopic } from './run-topic.ts'
import { type RunningPair, startServers } from './start-servers.ts'
import { topics } from './topics.ts'

const here = [findPeer('kube-apiserver-1.36'), findPeer('etcd-3.6'), findProgram('openssl')].every(
  (peer) => pathOrReason(peer) !== undefined,
)

describe.skipIf(!here)('a real kube-apiserver and ours', () => {
  const seen: Difference[] = []
  let servers: RunningPair
  let requests = 0

  beforeAll(async () => {
    servers = await startServers()
  })
  afterAll(async () => {
    await servers.stop()
    console.log(`${requests} requests, ${seen.length} differences seen`)
  })

  test.each(topics)('give the same answers about $name $requirements', async (topic) => {
    const outcome = await runTopic(topic, servers)
    requests += outcome.requests
    seen.push(...outcome.differences)
    const unexpected = outcome.differences.filter(
      (difference) => !knownDifferences.some(({ matches }) => matches(difference)),
    )
    if (process.env['DUMP'])
      writeFileSync(
        `${process.env['DUMP']}/${topic.name}.txt`,
        unexpected.map(describeDifference).join('\n'),
      )
    expect(unexpected.map(describeDifference)).toEqual([])
  })

  test('every listed difference is still there [GND-R92]', () => {
    const gone = knownDifferences.filter(({ matches }) => !seen.some(matches))
    expect(gone.map(({ what }) => what)).toEqual([])
  })
})
