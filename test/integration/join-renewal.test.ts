import { readFile, readlink, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type Kubeconfig,
  makeKubeconfig,
  parseKubeconfig,
  writeKubeconfig,
} from '../../src/kubeconfig/index.ts'
import { issueKeyAndCertificate, privateKeyPem } from '../../src/pki/index.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { createToken, type JoinEnd, scratch, startJoin } from './join-lab.suite.ts'

vi.setConfig({ testTimeout: 60_000 })

let server: InProcessServer
let directory: Awaited<ReturnType<typeof scratch>>
beforeAll(async () => {
  server = await startInProcess()
})
afterAll(() => server.close())
beforeEach(async () => {
  directory = await scratch()
})
afterEach(() => directory.remove())

const minuteMs = 60_000
const address = (): string => `127.0.0.1:${server.port}`
const file = (): string => join(directory.path, 'it.kubeconfig')
const again = (...args: readonly string[]): Promise<JoinEnd> =>
  startJoin([...args, '--out', file(), '--timeout', '60s', '--approval-timeout', '60s']).ended

/** A kubeconfig whose certificate is in the last third of its life. */
async function endingSoon(userName: string, organizations: readonly string[]): Promise<Kubeconfig> {
  const { clusterCa } = server.serving.pki
  const made = await issueKeyAndCertificate({
    ca: clusterCa,
    subject: { commonName: userName, organizations: [...organizations] },
    usages: ['client auth'],
    now: Date.now() - 50 * minuteMs,
    lifetimeMs: 60 * minuteMs,
  })
  return makeKubeconfig({
    clusterName: 'c',
    server: `https://${address()}`,
    caPem: clusterCa.bundlePem,
    userName,
    clientCertPem: made.certPem,
    clientKeyPem: privateKeyPem(made.key),
  })
}

describe('[DISC-C11] the certificate of a node that expires soon', () => {
  test('renews itself, without address or token', async () => {
    const before = await endingSoon('system:node:n1', ['system:nodes'])
    await writeKubeconfig(file(), before)
    const { stdout } = await again('--node-name', 'n1', '--output', 'json')
    expect(JSON.parse(stdout)).toMatchObject({ did: 'renewed', username: 'system:node:n1' })
    const { users } = await parseKubeconfig(await readFile(file(), 'utf8'), file())
    const old = before.users.get('system:node:n1')?.clientCertificateData
    expect(users.get('system:node:n1')?.clientCertificateData).not.toBe(old)
  })

  test('renews the file that a link leads to', async () => {
    const real = join(directory.path, 'real.kubeconfig')
    await writeKubeconfig(real, await endingSoon('system:node:n3', ['system:nodes']))
    await symlink(real, file())
    const before = await readFile(real, 'utf8')
    expect(await again('--node-name', 'n3')).toMatchObject({ code: 0 })
    expect(await readlink(file())).toBe(real)
    expect(await readFile(real, 'utf8')).not.toBe(before)
  })

  test('leaves whatever else is in its kubeconfig, and asks the cluster of its own context', async () => {
    const before = await endingSoon('system:node:n2', ['system:nodes'])
    const context = { cluster: 'c', user: 'system:node:n2', namespace: 'dev' }
    const other = { cluster: 'other', user: 'somebody' }
    await writeKubeconfig(file(), {
      ...before,
      currentContext: 'other',
      clusters: new Map([['other', { server: 'https://127.0.0.1:1' }], ...before.clusters]),
      contexts: new Map([
        ['other', other],
        ['mine', context],
      ]),
    })
    expect(await again('--node-name', 'n2')).toMatchObject({ code: 0 })
    const after = await parseKubeconfig(await readFile(file(), 'utf8'), file())
    expect(after.currentContext).toBe('other')
    expect([...after.contexts.values()]).toEqual([other, context])
    expect([...after.clusters.keys()]).toEqual(['other', 'c'])
  })
})

describe('[DISC-C11] the certificate of a person that expires soon', () => {
  beforeEach(async () => writeKubeconfig(file(), await endingSoon('jane', ['devs'])))
  const asJane = ['--as', 'user', 'jane', '--group', 'devs'] as const

  test('cannot renew itself, which is warned of as long as it is good', async () => {
    const before = await readFile(file(), 'utf8')
    const { code, stderr, stdout } = await again(...asJane)
    expect([code, stdout]).toEqual([0, expect.stringContaining('nothing to do')])
    expect(stderr).toContain('warning: jane may not ask this cluster for certificates')
    expect(await readFile(file(), 'utf8')).toBe(before)
  })

  test('is an error if that is all that is wanted', async () => {
    const { code, stdout } = await again(...asJane, '--renew', '--output', 'json')
    expect([code, JSON.parse(stdout)]).toMatchObject([
      1,
      { error: { code: 'REQUEST_FORBIDDEN', hint: expect.stringContaining('--token-file') } },
    ])
  })

  test('is asked for anew with a token, and somebody approves it', async () => {
    const token = await createToken(server)
    const { code, stderr } = await startJoin([
      address(),
      ...asJane,
      '--token',
      token,
      '--out',
      file(),
      '--approval-timeout',
      '0',
    ]).ended
    expect([code, stderr]).toEqual([1, expect.stringMatching(/certificate approve user-csr-/)])
  })
})
