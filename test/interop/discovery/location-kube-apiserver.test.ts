import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clusterInfoText } from '../../../src/bootstrap/cluster-info/cluster-info.ts'
import { createKubeClient, transportFromKubeconfig } from '../../../src/client/index.ts'
import { wellKnownKinds } from '../../../src/core/index.ts'
import { clusterLocation, loadContext } from '../../../src/kubeconfig/index.ts'
import { runInProcess } from '../../support/in-process-command.ts'
import {
  hasKubeApiserver,
  type KubeApiserverProcess,
  startKubeApiserver,
} from '../../support/kube-apiserver-process.ts'

const here = hasKubeApiserver()

describe.skipIf(!here)('cluster-info of a stock kube-apiserver [DISC-S5, DISC-C8]', () => {
  let peer: KubeApiserverProcess
  let copy: string
  beforeAll(async () => {
    peer = await startKubeApiserver([])
    copy = join(peer.directory, 'copy.kubeconfig')
    await writeFile(copy, await readFile(peer.kubeconfig))
    const context = await loadContext({ explicitPath: peer.kubeconfig, home: '' })
    const transport = await transportFromKubeconfig(context)
    const client = createKubeClient({ transport })
    const document = { addresses: [peer.address], rootsPem: peer.caPem } as const
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'kube-public', name: 'cluster-info' },
      data: { kubeconfig: clusterInfoText(document) },
    }
    await client.create(wellKnownKinds.configMap, object, {}, AbortSignal.timeout(30_000))
    transport.destroy()
  })
  afterAll(() => peer.stop())

  const command = async (...args: string[]) => {
    const call = ['cluster-info', ...args, '--output', 'json', '--kubeconfig']
    const { code, stdout, stderr } = await runInProcess([...call, copy])
    expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
    return JSON.parse(stdout) as Record<string, unknown>
  }
  const location = async () =>
    clusterLocation((await loadContext({ explicitPath: copy, home: '' })).cluster)

  test('is shown, changed and followed, although it lets no stranger read and knows no id', async () => {
    expect(await command('show')).toMatchObject({ addresses: [peer.address], signedBy: [] })
    expect(await command('refresh')).toMatchObject({ changed: false, answeredBy: peer.address })
    const second = peer.address.replace('127.0.0.1', 'localhost')
    await command('set-server', second, peer.address)
    expect(await command('refresh')).toMatchObject({ changed: true, written: true })
    expect((await location()).addresses).toEqual([peer.address, second])
    expect((await location()).clusterId).toBeUndefined()
  })
})
