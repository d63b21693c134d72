import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { aborted } from '../../core/index.ts'
import { FakeClusterView } from '../../testing/fake-cluster-view.ts'
import type { IncomingDial } from '../link/index.ts'
import { openTunnelLab, type TunnelLab } from './tunnel-lab.suite.ts'

let lab: TunnelLab
beforeEach(async () => {
  lab = await openTunnelLab()
})
afterEach(() => lab.close())

/** A cluster that does not answer any more when something is to be deleted. */
class StuckCluster extends FakeClusterView {
  override async write(...[op, object, options, signal]: Parameters<FakeClusterView['write']>) {
    if (op === 'delete') await aborted(signal)
    return super.write(op, object, options, signal)
  }
}

test('[TUN-F15] a cluster that does not answer keeps no port open: its Lease is removed beside everything else', async () => {
  const leases = { namespace: 'kube-system', labels: { a: 'b' } }
  await lab.start({ view: new StuckCluster(), config: { leases } })
  const deadline = new AbortController()
  const stopped = lab.server.stop(deadline.signal)
  await lab.until(() => !existsSync(lab.socketPath))
  expect(deadline.signal.aborted).toBe(false)
  deadline.abort()
  await stopped
})

test('[TUN-F15] a dial that is under way at the end may still become a connection', async () => {
  await lab.start({ mode: 'http-connect', config: { drainMs: 60_000 } })
  const agent = await lab.link()
  const asked = new Promise<IncomingDial>((resolve) => {
    agent.start({ dial: resolve, drain: () => {} })
  })
  const client = await lab.connectClient('10.0.0.1:80')
  const dial = await asked
  const stopped = lab.server.stop(new AbortController().signal)
  await lab.until(() => !existsSync(lab.socketPath))
  const channel = dial.accept()
  const finished = (): void => channel?.close()
  channel?.start({ data: () => {}, finished, drained: () => {}, closed: () => {} })
  const [answer] = (await once(client, 'data')) as [Buffer]
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /)
  client.end()
  await stopped
})
