import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { inClusterContext } from './in-cluster.ts'
import { loadContext } from './load.ts'

let directory: string
const at = (name: string) => join(directory, name)
const env = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'in-cluster-'))
  await writeFile(at('token'), 't')
  await writeFile(at('ca.crt'), 'ca')
  await writeFile(at('namespace'), 'dev\n')
})
afterEach(() => rm(directory, { recursive: true }))

describe('a pod [CRED-K12]', () => {
  test('finds its cluster, its service account and its namespace', async () => {
    expect(await inClusterContext({ env, directory })).toMatchObject({
      cluster: { server: 'https://10.0.0.1:443', certificateAuthority: at('ca.crt') },
      user: { tokenFile: at('token') },
      namespace: 'dev',
    })
  })

  test('may have an address of version 6, and no namespace', async () => {
    await rm(at('namespace'))
    const context = await inClusterContext({
      env: { ...env, KUBERNETES_SERVICE_HOST: 'fd00::1' },
      directory,
    })
    expect(context.cluster.server).toBe('https://[fd00::1]:443')
    expect(context.namespace).toBe('default')
  })

  test.each([
    ['KUBERNETES_SERVICE_PORT', { env: { KUBERNETES_SERVICE_HOST: 'a' } }],
    ['KUBERNETES_SERVICE_HOST', { env: {} }],
    ['token', { env, directory: '/none' }],
  ])('is told when there is no %s', async (name, place) => {
    await expect(inClusterContext({ directory, ...place })).rejects.toMatchObject({
      code: 'NOT_IN_CLUSTER',
      message: expect.stringContaining(name),
    })
  })

  test('is a user of its own cluster only if it has no kubeconfig and asks for no context', async () => {
    const sources = { home: directory, inCluster: { env, directory } }
    expect(await loadContext(sources)).toMatchObject({ contextName: 'in-cluster' })
    await expect(loadContext(sources, 'main')).rejects.toThrow('"main" does not exist')
    await expect(loadContext({ home: directory })).rejects.toThrow('no context is chosen')
    await writeFile(at('config'), '')
    await expect(loadContext({ ...sources, kubeconfig: at('config') })).rejects.toThrow(
      'no context is chosen',
    )
  })

  test('is told when there is no authority to believe', async () => {
    await rm(at('ca.crt'))
    await expect(inClusterContext({ env, directory })).rejects.toThrow('ca.crt does not exist')
  })
})
