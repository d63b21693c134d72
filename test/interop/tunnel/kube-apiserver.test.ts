import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { whyNoNetworks } from '../../support/network-namespace.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'
import { type Egress, SplitCluster } from '../../support/split-cluster.ts'
import { pairs } from '../../support/tunnel-pairs.ts'

const needed = ['kube-apiserver-1.36', 'kubectl-1.36', 'etcd-3.6']
const reason = whyNoNetworks()
if (reason !== undefined) console.warn(`skipped: ${reason}`)
const isHere =
  reason === undefined && needed.every((name) => pathOrReason(findPeer(name)) !== undefined)
const [ends = { server: 'ours', agent: 'ours' } as const] = pairs

const egresses: readonly Egress[] = [
  { mode: 'grpc', transport: 'uds' },
  { mode: 'http-connect', transport: 'uds' },
  { mode: 'http-connect', transport: 'tcp' },
]

/** Lines that a program of either kind marks as an error or a warning about the tunnel. */
const complaints = (lines: readonly string[]): string[] =>
  lines.filter((line) => /^E\d{4} |"level":"(?:error|fatal)"|^(?:ERROR|error)\b/.test(line))

describe.skipIf(!isHere).each(egresses)(
  'kube-apiserver with egress by $mode over $transport',
  (egress) => {
    let cluster: SplitCluster

    beforeAll(async () => {
      cluster = await SplitCluster.open(egress, ends)
      await cluster.startServer()
      await cluster.startAgent()
      await cluster.startApiserver()
      await cluster.createPod()
    })

    afterAll(() => cluster.close())

    const apiserverLog = async (): Promise<string[]> =>
      (await readFile(join(cluster.directory, 'kube-apiserver.log'), 'utf8')).split('\n')

    test('pods/proxy and services/proxy reach the node, and nobody complains [TUN-I8]', async () => {
      expect(await cluster.podAnswers('first')).toBe('the pod answers /first')
      const logged = await apiserverLog()
      const byService = '/api/v1/namespaces/default/services/web:80/proxy/second'
      expect(await cluster.kubectl('get', '--raw', byService)).toBe('the pod answers /second')
      expect(await cluster.podAnswers('third')).toBe('the pod answers /third')
      expect(complaints((await apiserverLog()).slice(logged.length))).toEqual([])
      expect(complaints(cluster.server?.lines ?? [])).toEqual([])
      expect(complaints(cluster.agent?.lines ?? [])).toEqual([])
    })

    test('an agent that was killed is replaced under it [TUN-I9]', async () => {
      await cluster.agent?.stop('SIGKILL')
      await cluster.startAgent()
      expect(await cluster.podAnswers('again')).toBe('the pod answers /again')
    })

    test('a server that was killed is replaced under it [TUN-I9]', async () => {
      await cluster.server?.stop('SIGKILL')
      const server = await cluster.startServer()
      await eventually('the server runs', () => !server.isGone)
      expect(await cluster.podAnswers('once-more')).toBe('the pod answers /once-more')
    })
  },
)
