import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createKubeClient, transportFromKubeconfig } from '../../src/client/index.ts'
import { wellKnownKinds } from '../../src/core/index.ts'
import { loadContext } from '../../src/kubeconfig/index.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { startInProcess } from '../support/in-process-server.ts'
import { createToken, scratch, startJoin } from './join-lab.suite.ts'

test('a node that joined before the rotation renews itself and outlives the old CA [DISC-S14]', async () => {
  const server = await startInProcess()
  const directory = await scratch()
  const file = join(directory.path, 'n1.kubeconfig')
  const node = ['--node-name', 'n1', '--out', file]
  const rotate = async (stage: string, ...more: string[]): Promise<void> => {
    const call = ['pki', 'rotate-ca', stage, ...more, '--data-dir', server.dataDirectory]
    expect(await runInProcess(call)).toMatchObject({ code: 0 })
  }
  const run = async (...args: string[]): Promise<unknown> => {
    const { code, stdout, stderr } = await startJoin([...node, '--output', 'json', ...args]).ended
    expect([code, stderr]).toEqual([0, expect.any(String)])
    return (JSON.parse(stdout) as { did: unknown }).did
  }
  const ownNode = async (): Promise<unknown> => {
    const context = await loadContext({ kubeconfig: file, home: directory.path })
    const transport = await transportFromKubeconfig(context)
    const key = { name: 'n1' }
    const signal = AbortSignal.timeout(15_000)
    try {
      return await createKubeClient({ transport }).get(wellKnownKinds.node, key, signal)
    } finally {
      transport.destroy()
    }
  }
  try {
    const token = await createToken(server)
    expect(await run(`127.0.0.1:${server.port}`, '--token', token)).toBe('joined')
    await rotate('begin')
    await rotate('switch')
    expect(await run()).toBe('present')
    expect(await run('--renew')).toBe('renewed')
    await rotate('finish', '--yes')
    // Unknown to the server as a Node, but known by its certificate and itself sure of the server.
    expect(await ownNode()).toBeUndefined()
  } finally {
    await server.close()
    await directory.remove()
  }
}, 60_000)
