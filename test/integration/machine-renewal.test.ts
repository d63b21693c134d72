import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { machineIdentity } from '../../src/core/index.ts'
import { makeKubeconfig, parseKubeconfig, writeKubeconfig } from '../../src/kubeconfig/index.ts'
import { attribute, distinguishedName } from '../../src/pki/certificate-lab.suite.ts'
import { labCsr } from '../../src/pki/csr-lab.suite.ts'
import { issueKeyAndCertificate, privateKeyPem } from '../../src/pki/index.ts'
import { runInProcess } from '../support/in-process-command.ts'
import { type InProcessServer, startInProcess } from '../support/in-process-server.ts'
import { type JoinEnd, scratch, startJoin } from './join-lab.suite.ts'

vi.setConfig({ testTimeout: 60_000 })

const { userPrefix, group, loopbackGroup } = machineIdentity
const minuteMs = 60_000
const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'

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

/** The kubeconfig of a machine, as a join that was approved leaves it. */
async function machineKubeconfig(
  name: string,
  { agoMs = 0, organizations = [group] }: { agoMs?: number; organizations?: string[] } = {},
) {
  const { clusterCa } = server.serving.pki
  const userName = `${userPrefix}${name}`
  const made = await issueKeyAndCertificate({
    ca: clusterCa,
    subject: { commonName: userName, organizations },
    usages: ['client auth'],
    now: Date.now() - agoMs,
    lifetimeMs: 60 * minuteMs,
  })
  const file = join(directory.path, `${name}.kubeconfig`)
  const clientKeyPem = privateKeyPem(made.key)
  const place = { clusterName: 'c', server: `https://127.0.0.1:${server.port}` }
  const who = { userName, clientCertPem: made.certPem, clientKeyPem }
  await writeKubeconfig(file, makeKubeconfig({ ...place, caPem: clusterCa.bundlePem, ...who }))
  const caller = server.as({ cert: made.certPem, key: clientKeyPem.reveal() })
  return { file, caller, certPem: made.certPem }
}

const patience = ['--timeout', '0', '--approval-timeout', '30s']
const renew = (name: string, file: string): Promise<JoinEnd> =>
  startJoin([...patience, '--as', 'machine', name, '--renew', '--out', file, '--output', 'json'])
    .ended

const requestFor = (name: string, organizations: readonly string[] = [group]): object => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name: `for-${name}` },
  spec: {
    request: Buffer.from(
      labCsr({
        subject: distinguishedName(...organizations.map((each) => [attribute('O', each)]), [
          attribute('CN', `${userPrefix}${name}`),
        ]),
      }),
    ).toString('base64'),
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['digital signature', 'client auth'],
  },
})

describe('a machine [ISS-W6]', () => {
  test('renews its certificate with itself: no address, no token, nobody to approve it', async () => {
    const { file, certPem } = await machineKubeconfig('laptop')
    const { code, stdout } = await renew('laptop', file)
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { did: 'renewed', username: `${userPrefix}laptop` },
    ])
    const config = await parseKubeconfig(await readFile(file, 'utf8'), file)
    const [user] = config.users.values()
    expect(user?.clientCertificateData).not.toBe(certPem)
    const now = server.as({
      cert: user?.clientCertificateData ?? '',
      key: user?.clientKeyData?.reveal() ?? '',
    })
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    expect((await now.request(path, { method: 'POST', body })).object).toMatchObject({
      status: { userInfo: { username: `${userPrefix}laptop`, groups: [group, expect.anything()] } },
    })
  })

  test('asks for no name and no group but its own', async () => {
    const { caller } = await machineKubeconfig('desk')
    for (const body of [requestFor('safe'), requestFor('desk', [group, 'system:nodes'])]) {
      const { status, text } = await caller.request(requests, { method: 'POST', body })
      expect([status, text]).toEqual([403, expect.stringContaining('of its own name and group')])
    }
  })

  test('sees no request but its own', async () => {
    const { caller } = await machineKubeconfig('tower')
    const other = await machineKubeconfig('rack')
    const body = requestFor('tower')
    expect((await caller.request(requests, { method: 'POST', body })).status).toBe(201)
    const statuses = async (who: typeof caller) => [
      (await who.get(`${requests}/for-tower`)).status,
      (await who.get(`${requests}?fieldSelector=metadata.name%3Dfor-tower`)).status,
      (await who.get(requests)).status,
    ]
    expect(await statuses(caller)).toEqual([200, 200, 403])
    expect(await statuses(other.caller)).toEqual([403, 403, 403])
  })

  test('whose certificate has expired does not renew it', async () => {
    const { file, caller } = await machineKubeconfig('late', { agoMs: 61 * minuteMs })
    const { code, stdout } = await renew('late', file)
    expect([code, JSON.parse(stdout)]).toMatchObject([
      1,
      { error: { code: 'CERTIFICATE_EXPIRED' } },
    ])
    const body = requestFor('late')
    expect((await caller.request(requests, { method: 'POST', body })).status).toBe(401)
  })

  test('that is revoked does not renew its certificate', async () => {
    const { file } = await machineKubeconfig('lost')
    const words = ['user', 'revoke', `${userPrefix}lost`, '--data-dir', server.dataDirectory]
    expect(await runInProcess(words)).toMatchObject({ code: 0 })
    await server.logged('revocation list read')
    const { code, stdout } = await renew('lost', file)
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { error: { code: 'TOKEN_REFUSED' } }])
  })

  test('on the loopback of the server is not renewed into one that is not', async () => {
    const { file } = await machineKubeconfig('here', { organizations: [group, loopbackGroup] })
    const { code, stdout } = await renew('here', file)
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { error: { code: 'GROUPS_LOST' } }])
  })
})
